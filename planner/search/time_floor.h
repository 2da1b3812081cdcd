#pragma once

#include <cstdint>
#include <span>

#include "planner/cost/layer_time.h"
#include "planner/cost/stage_times.h"
#include "planner/cost/time_rules.h"
#include "planner/spec/layout.h"

namespace shardwise {

/// Time that no step falls below, whatever data parallelism does with the states and wherever the
/// ranks lie: the compute of the stage that computes most for every micro-batch, and the idle time
/// of a pipeline that only computes. Communication, host and optimizer only add to it.
///
/// Zero where experts' exchange may hide behind compute: the stage that sets the pace is then not
/// the one that computes most.
/// \param times  by kind, of any place on the links
Seconds time_floor(std::span<const LayerTime> times, std::span<const StageMix> mixes,
                   const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches);

}  // namespace shardwise
