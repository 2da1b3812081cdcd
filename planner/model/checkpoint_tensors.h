#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// One tensor as a checkpoint stores it, its indices filled in.
struct CheckpointTensor {
  std::string name;  // "model.layers.31.mlp.experts.7.up_proj.weight"
  std::vector<std::int64_t> shape;
};

/// Every tensor of `model` in forward order. Blocks are numbered from 0, encoder blocks apart;
/// multi-token-prediction layers continue the numbers of the blocks, as in DeepSeek's checkpoint.
std::vector<CheckpointTensor> checkpoint_tensors(const ModelSpec& model);

}  // namespace shardwise
