#pragma once

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Time the busiest link of any stage is busy in a step: no step is shorter.
/// docs/data_parallel_time.md, "Links".
Seconds wire_time(const StageTimes& stages, const LeafContext& context);

}  // namespace shardwise
