#pragma once

#include "answers/asked_step.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace shardwise::sim {

/// Memory of this machine that simulating a plan's step takes, before any of it is taken: so much
/// for each operation of the step program, more where every rank is simulated, where trials are
/// run and where a trace is written.
/// Source: resident memory of `shardwise simulate` built with g++ 12 for x86-64, programs of 7,000
/// to 10,000,000 operations; rounded up by a tenth.
Bytes simulation_memory(const AskedStep& asked, const Plan& plan);

/// What is wrong where that is more than `asked.memory_limit`: the flag --memory-limit.
/// \pre as lower()
Diagnostics over_memory_limit(const AskedStep& asked, const Plan& plan);

}  // namespace shardwise::sim
