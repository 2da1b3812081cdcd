#include "planner/cost/layer/key_heads.h"

#include <algorithm>

#include "planner/cost/layer/linear_parameters.h"

namespace shardwise {

std::int64_t head_copies(std::int64_t kv_heads, const EngineProfile& engine, const Layout& layout) {
  if (kv_heads < 1 || layout.tp <= kv_heads || !plans_buffers(engine)) return 1;
  return layout.tp / kv_heads;
}

bool is_of_key_heads(const OperationSpec& op) {
  return op.name == "self_attn.k_proj" || op.name == "self_attn.v_proj" ||
         op.name == "self_attn.k_norm";
}

std::int64_t parameter_copies(const LayerSpec& layer, std::int32_t parameter,
                              const EngineProfile& engine, const Layout& layout) {
  if (layout.tp == 1) return 1;
  const auto core = std::ranges::find(layer.operations, OpKind::attention, &OperationSpec::kind);
  if (core == layer.operations.end()) return 1;
  const std::int64_t copies = head_copies(core->kv_heads, engine, layout);
  if (copies == 1) return 1;
  for (const LinearParameters& each : linear_parameters(layer)) {
    const bool own = each.weight == parameter || each.bias == parameter;
    if (own) return is_of_key_heads(*each.operation) ? copies : 1;
  }
  return 1;
}

}  // namespace shardwise
