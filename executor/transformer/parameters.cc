#include "executor/transformer/parameters.h"

namespace shardwise::exec {
namespace {

bool has_parameters(const OperationSpec& op) {
  return op.kind == OpKind::norm || op.kind == OpKind::gemm || op.kind == OpKind::embedding;
}

}  // namespace

const OperationSpec* find_operation(const LayerSpec& layer, std::string_view name) {
  for (const OperationSpec& op : layer.operations) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

ParameterIndex parameters_of(const LayerSpec& layer, std::string_view operation) {
  const int count = static_cast<int>(layer.parameters.size());
  int next = 0;
  for (const OperationSpec& op : layer.operations) {
    if (!has_parameters(op)) continue;
    ParameterIndex index;
    index.weight = next++;
    const bool bias =
        next < count && layer.parameters[static_cast<std::size_t>(next)].name.ends_with(".bias");
    if (bias) index.bias = next++;
    if (op.name == operation) return index;
  }
  return {};
}

}  // namespace shardwise::exec
