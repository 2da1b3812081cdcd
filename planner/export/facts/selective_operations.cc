#include "planner/export/facts/selective_operations.h"

#include <algorithm>
#include <string_view>

namespace shardwise {
namespace {

/// Whether torchtitan computes the product together with the one before it, as one of queries, keys
/// and values.
bool is_of_queries(std::string_view name) {
  return name == "self_attn.k_proj" || name == "self_attn.v_proj";
}

bool is_exchange(OpKind kind) { return kind == OpKind::dispatch || kind == OpKind::combine; }

}  // namespace

std::vector<std::string> selective_operations(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.kinds) {
    if (!is_main_block(layer.role)) continue;
    int products = 0;
    for (const OperationSpec& op : layer.operations) {
      const bool counts =
          op.kind == OpKind::gemm && !op.routed_expert && op.name != "mlp.router_proj";
      if (counts && !is_of_queries(op.name)) ++products;
      const bool saved = op.kind == OpKind::attention || is_exchange(op.kind) ||
                         op.kind == OpKind::router || (counts && products % 2 == 1);
      if (saved || std::ranges::find(names, op.name) != names.end()) continue;
      names.push_back(op.name);
    }
  }
  return names;
}

}  // namespace shardwise
