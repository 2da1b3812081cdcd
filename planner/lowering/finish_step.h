#pragma once

#include <cstdint>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/pass_memory.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// ProgramOp::part of operations `finalize`, in Megatron's order.
struct FinalizePart {
  enum : std::int32_t {
    kNorms,
    kTiedEmbedding,
    kExpertCounts,
    kExpertBias,
    kTokensFromLastStage,
    kTokens,
    kScale,
    kCopies,
    kCopiedHeads,
  };
};

/// Operations after the last pass of a stage: the reductions that make gradients final, their norm,
/// the optimizer, and the gathers of what it updated. Parts of `finalize`: under DualPipe first 7,
/// what this rank holds of both copies' gradients, summed with its mirror image; then, in
/// Megatron's order, 0
/// gradients of parameters that tp replicates, summed over tp under sequence parallelism, else of
/// the norms of heads; 8 heads of keys and values, summed over the tp ranks that have them; 1 the
/// tied embedding, summed over the first and the last stage; 2 tokens of each expert, summed over
/// the stage, and 3 the bias that evens them out; with per-token loss, 4 the tokens that count,
/// sent by the last stage, 5 summed over data and context parallel ranks, and 6 gradients divided
/// by them. Position embeddings live on the first stage alone, so nothing is summed
/// (default_position_embedding_ranks in megatron/core/parallel_state.py). Source:
/// Megatron-LM@d98e8a64:megatron/core/distributed/finalize_model_grads.py:560-713.
void finish_step(const LoweringContext& context, std::int32_t stage, StageBuilder& builder,
                 PassMemoryBuffers& memory, DataParallelSchedule& data_parallel);

}  // namespace shardwise
