#pragma once

#include "planner/lowering/data_parallel_schedule.h"
#include "planner/lowering/lowering_context.h"
#include "planner/lowering/pass_memory.h"
#include "planner/lowering/stage_builder.h"

namespace shardwise {

/// What follows the last pass of a stage: the reductions that make gradients final, their norm, the
/// optimizer, and the gathers of what it updated. Parts of `finalize`, in Megatron's order: 0
/// gradients of parameters that tp replicates, summed over tp under sequence parallelism; 1 the
/// tied embedding, summed over the first and the last stage.
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/finalize_model_grads.py:560-713.
void finish_step(const LoweringContext& context, std::int32_t stage, StageBuilder& builder,
                 PassMemoryBuffers& memory, DataParallelSchedule& data_parallel);

}  // namespace shardwise
