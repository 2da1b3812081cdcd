#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/stage/lowering_context.h"

namespace shardwise {

/// Parameters of a stage that are reduced, and gathered after the step, in one collective.
struct Bucket {
  std::int16_t chunk = 0;
  bool routed = false;
  bool root = false;  // of root_buckets()
  std::int64_t elements = 0;
  std::int64_t padded = 0;  // with what aligns them, for the ranks that share it
  std::size_t first = 0;    // slots of the layers it has parameters of: the first …
  std::size_t last = 0;     // … and the last in forward order
};

/// The buckets of a stage in the order in which backward completes them. A bucket takes tensors in
/// the reverse of registered_tensors(), dense and routed apart; a chunk of the model starts new
/// ones. How they are filled and padded: BucketRules, has_single_buckets().
/// Buckets that are kept are rebuilt after the first step, which has one a chunk.
/// Engines that work by unit have a bucket a layer, or root_buckets() of what is outside.
std::vector<Bucket> buckets_of(const LoweringContext& context, std::int32_t stage);

}  // namespace shardwise
