#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/lowering_context.h"

namespace shardwise {

/// Parameters of a stage that are reduced, and gathered after the step, in one collective.
struct Bucket {
  std::int16_t chunk = 0;
  bool routed = false;
  std::int64_t elements = 0;
  std::int64_t padded = 0;  // for the ranks that share it, as the engine pads
  std::size_t first = 0;    // slots of the layers it has parameters of: the first …
  std::size_t last = 0;     // … and the last in forward order
};

/// The buckets of a stage in the order in which backward completes them. A bucket takes tensors in
/// reverse order of the model, dense and routed apart; a chunk of the model starts new ones.
/// Engines that work by unit have a bucket a layer.
///
/// Under Megatron the tensor with which a bucket has the engine's number of elements is its last.
/// DeepSpeed and InternEvo reduce a bucket before a tensor that would take it over that number, so
/// only a tensor that is larger alone makes a larger bucket. DeepSpeed's first ZeRO-1 cuts flat
/// gradients wherever the number falls.
///
/// Megatron's buffers have a single bucket where nothing would overlap: without
/// overlap_grad_reduce, on every stage but the first and in every chunk but the first.
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/distributed_data_parallel.py:121-172;
/// megatron/core/optimizer/param_layout.py:30-34 (padding);
/// deepspeedai/DeepSpeed:deepspeed/runtime/zero/stage_1_and_2.py,
/// reduce_independent_p_g_buckets_and_remove_grads, and @v0.4.0:stage1.py,
/// get_data_parallel_sub_partitions; InternLM/InternEvo:
/// internlm/solver/optimizer/hybrid_zero_optim.py, _store_and_try_reduce_grads_by_bucket.
std::vector<Bucket> buckets_of(const LoweringContext& context, std::int32_t stage);

}  // namespace shardwise
