#pragma once

#include <cstdint>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"

namespace shardwise {

/// Elements of a rank in the largest sub-group that an optimizer steps on at once, and in the
/// largest of several tensors.
struct SubGroupSizes {
  std::int64_t largest = 0;
  std::int64_t joined = 0;
};
/// A sub-group takes the rank's parts of whole tensors, in the order of the model, until it has
/// `size` elements. Experts have sub-groups of their own where other ranks share them.
/// Layers of a kind are taken one after the other. \pre size > 0
/// Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py, _create_fp16_sub_groups and
/// _get_trainable_parameter_groups.
SubGroupSizes sub_group_sizes(const StageParts& parts, const ShardRanks& ranks, std::int64_t size);

}  // namespace shardwise
