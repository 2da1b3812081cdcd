#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/layer/saved_tensors.h"

namespace shardwise {

/// Way of a weight gradient between its GEMM and the reduction.
enum class WeightGradients : std::uint8_t {
  fused,        // the GEMM adds it to a buffer that is counted elsewhere
  temporary,    // a tensor of its own until it is added to that buffer
  accumulated,  // a tensor of its own until the unit's reduction
};

/// Rules by which a layer's operations are run.
struct PassRules {
  std::int64_t input = 0;  // bytes of the layer's input
  std::int64_t gradient_bytes = 2;
  WeightGradients weight_gradients = WeightGradients::fused;
  bool whole_layer_again = false;  // recompute: keep the input, run the layer again
  bool interiors_only = false;     // recomputed operations still keep what they hand on
  bool again_at_once = false;      // what is recomputed is recomputed when backward starts
  bool region = false;             // products that are not recomputed are kept, needed or not
  // Our executor: the residual stream is one tensor of so many bytes that all layers work on, and
  // the gradient of a kept tensor takes the place of the tensor. 0 = neither.
  std::int64_t stream = 0;
  bool loss_apart = false;  // LayerMemory::loss_apart
  std::vector<bool> again;  // operation is recomputed, by index
  SavedTensors saved;
};

/// Which tensors and copies stay from forward to backward.
struct KeptTensors {
  std::vector<bool> tensor;  // by number
  std::vector<bool> copies;  // by operation
  std::vector<bool> wanted;  // needed by backward, kept or recomputed
};
KeptTensors kept_tensors(const std::vector<OperationMemory>& operations, const PassRules& rules);

/// Walks the layer forward and backward, operation by operation.
/// \pre rules.again has one entry an operation
void walk_layer(const std::vector<OperationMemory>& operations, const PassRules& rules,
                LayerMemory& memory);

}  // namespace shardwise
