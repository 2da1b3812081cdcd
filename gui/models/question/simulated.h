#pragma once

#include <cstdint>

#include "answers/simulated_steps.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// Passes of micro-batches through layers in a step that is simulated beside what people look at: a
/// second.
inline constexpr std::int64_t kMostPasses = 4 * sim::kMostLayerPasses;

/// Whether a plan's step has no more of them.
bool is_simulated(const Plan& plan);

/// The simulated step of a plan; the estimate where the step is too long.
StepReport predicted_report(const Plan& plan);

}  // namespace shardwise::view
