#pragma once

#include <string>
#include <vector>

namespace shardwise::test {

/// Outcome of a program's run.
struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  std::string out;
  std::string err;
};

/// Where a program of this build is: build/<preset>/bin/name.
std::string built(const std::string& name);

/// Runs a program, a path or a name on PATH, in the repository root and without a terminal.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments);

/// Runs shardwise-run of this build.
Outcome shardwise_run(const std::vector<std::string>& arguments);

}  // namespace shardwise::test
