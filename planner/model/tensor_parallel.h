#pragma once

#include <string>
#include <vector>

#include "planner/spec/model_spec.h"

namespace shardwise {

/// One thing of a model that `tp` ranks cannot share equally.
struct TpMisfit {
  std::string name;  // of the parameter, or of the attention operation
  std::string what;  // "num_key_value_heads", "heads" or "dimension 0"
  std::int64_t extent = 0;
  bool routed_expert = false;  // cut by expert tensor parallelism (etp) rather than by tp
  bool padded = false;         // vocabulary tables are padded to fit, so this is no obstacle
};

/// Everything that does not divide by `tp`, each name once. Whole heads must stay together, so a
/// fused projection counts by its heads too. \pre tp >= 1
std::vector<TpMisfit> tensor_parallel_misfits(const ModelSpec& model, std::int64_t tp);

}  // namespace shardwise
