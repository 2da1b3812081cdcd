#pragma once

#include <cstdint>

#include "planner/cost/layer/shard_ranks.h"
#include "planner/cost/memory/memory.h"

namespace shardwise {

inline constexpr int kNarrowMomentBytes = 2;       // of an element whose two moments are in 8 bits
inline constexpr int kMomentScaleBytes = 8;        // fp32 scales of a block, one of each moment
inline constexpr std::int64_t kMomentBlock = 256;  // elements that share a scale

/// The two moments of AdamW as bitsandbytes' optimizers hold them.
struct BlockMoments {
  std::int64_t wide = 0;    // elements in fp32: all, or of small tensors and of the embedding
  std::int64_t narrow = 0;  // elements in 8 bits
  std::int64_t scales = 0;  // of their blocks, and the 256 values that 8 bits stand for
  std::int64_t paged = 0;   // bytes in managed memory, in place of the elements
};

/// Moments of one rank, tensor by tensor. Tensors below 4,096 elements stay in fp32, and so do
/// embeddings, as transformers' Trainer asks; tensors below 100,000 elements are not paged; scales
/// never are. Parts of a tensor that ranks share are taken as equal.
/// \pre is_bitsandbytes(rules.adamw)
/// Source: bitsandbytes@0.50.2:bitsandbytes/optim/optimizer.py, Optimizer2State.init_state and
/// get_state_buffer; transformers@v5.23.0:src/transformers/trainer.py, create_optimizer.
BlockMoments bitsandbytes_moments(const StageParts& parts, const MemoryRules& rules,
                                  const ShardRanks& ranks);

/// Moments of torchao's AdamW8bit, which takes FSDP2's DTensors: the AdamW of PyTorch whose moments
/// are int8. A rank's part of a tensor stays in the parameter's type below 4,096 elements,
/// or where blocks do not divide it. Each part has the values that 8 bits stand for, of either
/// moment.
/// \pre rules.narrow_moments
/// Source: torchao@0.18.0:torchao/optim/adam.py, _AdamBase._new_buffer; subclass_8bit.py.
BlockMoments torchao_moments(const StageParts& parts, const MemoryRules& rules,
                             const ShardRanks& ranks);

}  // namespace shardwise
