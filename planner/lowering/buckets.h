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
/// reverse order of the model, dense and routed apart, until it has the engine's number of
/// elements; a chunk of the model starts new ones. Engines that work by unit have a bucket a layer.
///
/// Megatron's buffers have a single bucket where nothing would overlap: without
/// overlap_grad_reduce, on every stage but the first and in every chunk but the first.
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/distributed_data_parallel.py:121-172;
/// megatron/core/optimizer/param_layout.py:30-34 (padding).
std::vector<Bucket> buckets_of(const LoweringContext& context, std::int32_t stage);

}  // namespace shardwise
