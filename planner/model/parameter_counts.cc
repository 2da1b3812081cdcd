#include "planner/model/parameter_counts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shardwise {
namespace {

/// Whether an embedding layer looks `parameter` up by position or token type.
bool is_table_of_positions(const LayerSpec& layer, const ParameterSpec& parameter) {
  if (layer.role != LayerRole::embedding || parameter.tp != TpSplit::none) return false;
  return std::any_of(layer.operations.begin(), layer.operations.end(),
                     [&](const OperationSpec& operation) {
                       return operation.kind == OpKind::embedding &&
                              parameter.shape == std::vector{operation.k, operation.width};
                     });
}

/// Scales of a matrix in 4 bits, and the other half of a tensor in fp32, are beside a parameter:
/// "q_proj.weight.absmax" (planner/cost/layer/adapters.h).
bool is_beside(const ParameterSpec& parameter) {
  const auto has = [&](const char* word) { return parameter.name.find(word) != std::string::npos; };
  return !parameter.trainable && (has(".weight.") || has(".bias.") || has(".fp32_remainder"));
}

}  // namespace

ParameterCounts count_parameters(const ModelSpec& model) {
  ParameterCounts counts;
  for (const int kind : model.layers) {
    const LayerSpec& layer = model.kinds[static_cast<std::size_t>(kind)];
    for (const ParameterSpec& parameter : layer.parameters) {
      if (is_beside(parameter)) continue;
      const std::int64_t elements = parameter.elements();
      counts.total += elements;
      if (!parameter.trainable) counts.untrained += elements;
      if (layer.role == LayerRole::mtp) {
        counts.mtp += elements;
        continue;
      }
      if (parameter.tp == TpSplit::vocab) counts.vocabulary += elements;
      if (is_table_of_positions(layer, parameter)) counts.positions += elements;
      counts.active += parameter.routed_expert
                           ? elements / model.num_experts * model.num_experts_per_tok
                           : elements;
    }
  }
  return counts;
}

}  // namespace shardwise
