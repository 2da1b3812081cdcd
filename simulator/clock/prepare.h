#pragma once

#include <cstdint>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// Part of a simulation that is wanted: all, when operations run, or what they cost and wait for.
enum class Wanted : std::uint8_t { all, times, program };

/// Makes program, prices and workload of a simulation, which is not run yet; no workload where the
/// program is all that is wanted.
/// \param num_microbatches  of the step, each of which costs what one of the plan's does; 0: all.
/// \pre not all is wanted of a step of others
void prepare(const Plan& plan, const SimulationOptions& options, Wanted wanted, Simulation& made,
             std::int64_t num_microbatches = 0);

}  // namespace shardwise::sim
