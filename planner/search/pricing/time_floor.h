#pragma once

#include <cstdint>
#include <span>

#include "planner/cost/layer/layer_time.h"
#include "planner/cost/software/time_rules.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Time that no step falls below, whatever data parallelism does with the states and wherever the
/// ranks lie: a stage computes every micro-batch, after the stages before it have had their first
/// chunk of the first one, and before they have that of the last one's backward pass (without its
/// weight gradients, which schedules defer). Communication, host and optimizer only add to it.
///
/// Zero where experts' exchange may hide behind compute: the stage that sets the pace is then not
/// the one that computes most.
/// \param times  by kind, of any place on the links
Seconds time_floor(std::span<const LayerTime> times, std::span<const StageLayers> stages,
                   const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches);

/// Floor with the communication inside a layer that nothing hides: below no time of a pipeline
/// whose groups lie where `times` says, and found without a sweep through its schedule.
/// \param times  by kind, of the place that is priced
Seconds stream_floor(std::span<const LayerTime> times, std::span<const StageLayers> stages,
                     const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches);

}  // namespace shardwise
