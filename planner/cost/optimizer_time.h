#pragma once

#include "planner/cost/step_time.h"

namespace shardwise {

/// After the last backward pass, on the fullest stage.
struct OptimizerTime {
  Seconds update;    // norm, clipping, update, clearing the buffer; on the host when offloaded
  Seconds finalize;  // small reductions: norms under sequence parallelism, tied embedding, norm
  Seconds transfer;  // gradients to the host and weights back, not hidden
};
OptimizerTime optimizer_time(const StageTimes& stages, const LeafContext& context);

}  // namespace shardwise
