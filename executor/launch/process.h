#pragma once

#include <functional>

#include "executor/comm/abort.h"
#include "executor/comm/world.h"
#include "executor/launch/launcher.h"
#include "executor/status/live_job.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// A rank of a job as this process is one.
using RankMain = std::function<int(World& world, AbortSignal& abort)>;

/// Joins the launcher's processes and runs `rank_main`, which returns the exit code. Where it
/// throws in any of them, all end, with one message. Each process says what all ranks do.
/// \param facts  of the job \returns the exit code \pre launcher.ranks > 1
int run_process(const Launcher& launcher, double timeout_s, const JobFacts& facts,
                const RankMain& rank_main);

/// Ends a process before ranks meet: rank 0 prints, and every process of torchrun, whose variables
/// a user may have set for each. \returns kBadInput
int refuse_alone(const Launcher& launcher, const Diagnostics& problems);

}  // namespace shardwise::exec
