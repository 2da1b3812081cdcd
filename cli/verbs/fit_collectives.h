#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {

/// Command line of `shardwise fit --collectives`.
struct CollectiveFitFlags {
  std::vector<std::string> files;
  std::string cluster;
  std::string tier;                // empty: the outermost tier that all measurements cross
  std::vector<std::string> only;   // "column=value"
  std::vector<std::string> fixed;  // coefficients that are not fitted
  std::string name;
  std::string source;
  std::string output;  // empty: none written
  bool check = false;  // only print the errors of the coefficients there are
};

void add_collective_flags(CLI::App& verb, CollectiveFitFlags& flags);

ExitCode fit_collective_files(const CollectiveFitFlags& flags);

}  // namespace shardwise::cli
