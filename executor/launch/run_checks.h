#pragma once

#include "executor/launch/launcher.h"
#include "executor/launch/run_options.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Problems that keep a plan from running anywhere.
Diagnostics problems_of(const Plan& plan);

/// Whether the launcher and --ranks give the plan its ranks. Known before ranks meet.
Diagnostics problems_of_ranks(const Plan& plan, const RunOptions& options,
                              const Launcher& launcher);

/// Whether the files that a run writes can be written, and are no two of one name.
/// Those that are standard output are reserved.
Diagnostics problems_of_outputs(const RunOptions& options);

}  // namespace shardwise::exec
