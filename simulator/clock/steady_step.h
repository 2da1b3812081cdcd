#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// The length of a step of many micro-batches, by a run of few.
struct SteadyStep {
  double seconds = 0;
  std::int64_t microbatches = 0;  // that were run
};

/// Runs few micro-batches and adds a period for all that are left out (microbatches_a_period()),
/// where this run proves its periods equal: the program of one period more has the same operations
/// and one period's more (repeated_parts()), and the run is at two moments a period apart in the
/// same state (steady_period()). More micro-batches are tried where few prove nothing.
///
/// Nothing where a step has too few micro-batches for this to be less work, where nothing is
/// proved, or soon after `stop` is requested. \pre as simulated_length()
std::optional<SteadyStep> steady_step(const Plan& plan, const SimulationOptions& options,
                                      const std::stop_token& stop = {});

}  // namespace shardwise::sim
