#pragma once

#include <string>
#include <vector>

namespace shardwise::cli {

/// What a run of the built `shardwise` did.
struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  std::string out;
  std::string err;
};

/// Runs build/<preset>/bin/shardwise with `arguments`, in the repository root and without a
/// terminal.
Outcome shardwise(const std::vector<std::string>& arguments);

}  // namespace shardwise::cli
