#pragma once

#include "executor/launch/run_options.h"

namespace shardwise::exec {

/// Runs a plan: checks it, trains, writes what was asked for. \returns the exit code
int run(const RunOptions& options);

}  // namespace shardwise::exec
