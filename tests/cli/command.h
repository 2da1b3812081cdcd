#pragma once

#include <string>
#include <vector>

#include "tests/support/command.h"

namespace shardwise::cli {

using test::Outcome;

/// Runs build/<preset>/bin/shardwise with `arguments`.
inline Outcome shardwise(const std::vector<std::string>& arguments) {
  return test::run_program(test::built("shardwise"), arguments);
}

}  // namespace shardwise::cli
