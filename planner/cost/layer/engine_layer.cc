#include "planner/cost/layer/engine_layer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

using Operation = std::vector<OperationSpec>::const_iterator;

Operation find_operation(const LayerSpec& layer, std::string_view name) {
  return std::ranges::find(layer.operations, name, &OperationSpec::name);
}

/// Whether queries of latent attention are made of the hidden state in one product, without a norm
/// of their own.
bool lacks_query_norm(const LayerSpec& layer) {
  const auto has = [&](std::string_view name) {
    return find_operation(layer, name) != layer.operations.end();
  };
  return has("self_attn.q_proj") && has("self_attn.kv_a_proj") && !has(kQueryNorm);
}

LayerSpec with_query_norm(const LayerSpec& layer) {
  LayerSpec own = layer;
  const Operation query = find_operation(own, "self_attn.q_proj");
  OperationSpec norm;
  norm.name = kQueryNorm;
  norm.kind = OpKind::norm;
  norm.width = query->k;
  norm.rms = find_operation(own, "self_attn.kv_a_norm")->rms;
  const std::vector<std::int64_t> shape = {query->width, query->k};
  const auto weight = std::ranges::find(own.parameters, shape, &ParameterSpec::shape);
  ParameterSpec parameter;
  parameter.name = weight->name.substr(0, weight->name.rfind('.')) + ".layer_norm_weight";
  parameter.shape = {norm.width};
  own.parameters.insert(weight, std::move(parameter));
  own.operations.insert(query, std::move(norm));
  return own;
}

}  // namespace

EngineLayer::EngineLayer(const LayerSpec& layer, const EngineProfile& engine) : layer_(layer) {
  if (engine.norms_latent_queries && lacks_query_norm(layer)) own_ = with_query_norm(layer);
}

}  // namespace shardwise
