#pragma once

#include <string>

namespace shardwise::exec {

/// Options a user asked for.
struct CalibrateOptions {
  std::string output;
  std::string name;  // of the cluster; empty: that of the file
  int ranks = 0;     // threads of this process that are ranks; 0: one, or those of the launcher
  int threads = 1;   // that compute, a rank
  double timeout_s = 600;
};

/// Measures this machine as so many ranks see it that compute at once, prints how well the
/// planner's curves fit, and writes a cluster file. \returns the exit code
int calibrate(const CalibrateOptions& options);

}  // namespace shardwise::exec
