#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/units.h"

namespace shardwise::sim {

/// Layouts that are simulated at least: the best by the step-time model.
inline constexpr std::size_t kSimulated = 10;

/// Passes of micro-batches through layers in a step, beyond which it is not simulated to rank it: a
/// simulation takes time and memory in proportion. A tenth of a second.
inline constexpr std::int64_t kMostLayerPasses = 250'000;
std::int64_t layer_passes_of_step(const Plan& plan);

/// Counts the layouts, from the first on, that are simulated to rank them: as many as take together
/// no more passes than kSimulated of the longest steps. None where one of the first kSimulated is
/// too long. \param plans  the best by the step-time model first
std::size_t count_to_simulate(std::span<const Plan> plans);

/// What simulate() says of each plan's step. \param threads  0 = as many as the machine has cores
std::vector<Seconds> simulated_steps(std::span<const Plan> plans, int threads);

}  // namespace shardwise::sim
