#pragma once

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/stage_buffers.h"

namespace shardwise {

/// The pass of the layer that runs at `moment`.
PassMemory pass_of(const StageBuffers& buffers, const StageMoment& moment, bool backward);

/// Bytes of a layer when its backward pass is done and its gradients are joined in a flat
/// tensor, under joins_root() engines: all of them, the gradients of its output and its input, and
/// what recompute began with.
///
/// Where a bucket of all reductions is reduced instead (BucketUse): the gradients that are not in
/// it, and what is there when the gradient that begins the reduction is made; of the end of
/// backward the former alone.
PassMemory joined_pass(const StageBuffers& buffers, const StageMoment& moment,
                       const StageContext& context);

}  // namespace shardwise
