#include "planner/model/tensor_parallel.h"

namespace shardwise {

std::vector<TpMisfit> tensor_parallel_misfits(const ModelSpec& model, std::int64_t tp) {
  std::vector<TpMisfit> misfits;
  const auto divides = [&](std::int64_t extent) { return extent % tp == 0; };
  for (const LayerSpec& kind : model.kinds) {
    for (const ParameterSpec& parameter : kind.parameters) {
      if (parameter.tp_dim < 0) continue;
      const std::int64_t extent = parameter.shape[static_cast<std::size_t>(parameter.tp_dim)];
      if (divides(extent)) continue;
      misfits.push_back({.name = parameter.name,
                         .what = "dimension " + std::to_string(parameter.tp_dim),
                         .extent = extent,
                         .routed_expert = parameter.routed_expert,
                         .padded = parameter.tp == TpSplit::vocab});
    }
    for (const OperationSpec& operation : kind.operations) {
      if (operation.kind != OpKind::attention) continue;
      const std::string name = kind.name + "." + operation.name;
      if (!divides(operation.heads)) {
        misfits.push_back({.name = name, .what = "heads", .extent = operation.heads});
      }
      if (!divides(operation.kv_heads)) {
        misfits.push_back(
            {.name = name, .what = "num_key_value_heads", .extent = operation.kv_heads});
      }
    }
  }
  return misfits;
}

}  // namespace shardwise
