#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// The parameters of one GEMM, as indices into LayerSpec::parameters; -1 for none.
struct LinearParameters {
  const OperationSpec* operation = nullptr;
  std::int32_t first = 0;  // behind those of the GEMM before: a norm between the two, or the weight
  std::int32_t weight = -1;
  std::int32_t bias = -1;
};

/// Those of all GEMMs of a layer that have a weight there, in forward order. \pre `layer` outlives
/// the result
std::vector<LinearParameters> linear_parameters(const LayerSpec& layer);

}  // namespace shardwise
