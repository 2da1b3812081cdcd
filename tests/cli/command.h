#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace shardwise::cli {

using test::Outcome;

/// Runs build/<preset>/bin/shardwise with `arguments`.
inline Outcome shardwise(const std::vector<std::string>& arguments) {
  return test::run_program(test::built("shardwise"), arguments);
}

/// Whether the shell finds the program.
inline bool installed(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace shardwise::cli
