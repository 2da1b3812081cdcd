#include "planner/model/layer_builder.h"

#include <utility>

namespace shardwise {

LayerBuilder::LayerBuilder(std::string name, LayerRole role, std::string prefix)
    : prefix_(std::move(prefix)) {
  layer_.name = std::move(name);
  layer_.role = role;
}

OperationSpec& LayerBuilder::linear(const Linear& spec) {
  OperationSpec& op = operation(spec.op, OpKind::gemm, spec.n, spec.tp);
  op.k = spec.k;
  op.bias = spec.bias;
  if (spec.module.empty()) return op;

  const bool cuts_output = spec.tp == TpSplit::column || spec.tp == TpSplit::vocab;
  const int output_dim = transposed_ ? 1 : 0;
  int weight_dim = -1;
  if (cuts_output) weight_dim = output_dim;
  if (spec.tp == TpSplit::row) weight_dim = 1 - output_dim;
  parameter(spec.module + ".weight",
            transposed_ ? std::vector{spec.k, spec.n} : std::vector{spec.n, spec.k}, spec.tp,
            weight_dim);
  if (spec.bias) {
    // A row-parallel layer adds its bias once, after the sum over ranks: every rank holds it whole.
    parameter(spec.module + ".bias", {spec.n}, cuts_output ? spec.tp : TpSplit::none,
              cuts_output ? 0 : -1);
  }
  return op;
}

void LayerBuilder::parameter(const std::string& tensor, std::vector<std::int64_t> shape, TpSplit tp,
                             int tp_dim, bool trainable) {
  ParameterSpec parameter;
  parameter.name = prefix_ + tensor;
  parameter.shape = std::move(shape);
  parameter.tp = tp;
  parameter.tp_dim = tp_dim;
  if (experts_ > 0) {
    parameter.routed_expert = true;
    const bool one_an_expert = parameter.name.find("{expert}") != std::string::npos;
    parameter.count = one_an_expert ? experts_ : 1;
  }
  parameter.trainable = trainable;
  layer_.parameters.push_back(std::move(parameter));
}

OperationSpec& LayerBuilder::operation(const std::string& op, OpKind kind, std::int64_t width,
                                       TpSplit tp) {
  OperationSpec operation;
  operation.name = op;
  operation.kind = kind;
  operation.width = width;
  operation.tp = tp;
  operation.routed_expert = experts_ > 0;
  layer_.operations.push_back(std::move(operation));
  return layer_.operations.back();
}

}  // namespace shardwise
