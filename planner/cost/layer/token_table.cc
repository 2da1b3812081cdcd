#include "planner/cost/layer/token_table.h"

namespace shardwise {

std::int64_t table_elements(std::span<const LayerMemory> by_kind) {
  for (const LayerMemory& layer : by_kind) {
    if (layer.role == LayerRole::embedding) return layer.parameters.vocabulary;
  }
  return 0;
}

TensorGroup token_table(std::span<const LayerMemory> by_kind) {
  for (const LayerMemory& layer : by_kind) {
    for (const TensorGroup& tensor : layer.parameters.in_order) {
      if (is_token_table(layer, tensor.rows * tensor.row_elements)) return tensor;
    }
  }
  return {0, 1, 1, false};
}

bool is_token_table(const LayerMemory& layer, std::int64_t elements) {
  return layer.role == LayerRole::embedding && elements == layer.parameters.vocabulary;
}

bool has_tied_table(const LayerMemory& layer) {
  const LayerParameters& p = layer.parameters;
  return layer.role == LayerRole::head && p.vocabulary + p.frozen_vocabulary == 0;
}

}  // namespace shardwise
