#include "planner/cost/layer/linear_parameters.h"

namespace shardwise {
namespace {

bool is_weight_of(const ParameterSpec& parameter, const OperationSpec& gemm) {
  const std::vector<std::int64_t>& shape = parameter.shape;
  if (shape.size() < 2) return false;
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t columns = shape.back();
  return (rows == gemm.width && columns == gemm.k) || (rows == gemm.k && columns == gemm.width);
}

}  // namespace

std::vector<LinearParameters> linear_parameters(const LayerSpec& layer) {
  // Weights are in the order of the GEMMs that read them, with other parameters in between.
  const std::vector<ParameterSpec>& parameters = layer.parameters;
  const auto count = static_cast<std::int32_t>(parameters.size());
  std::vector<LinearParameters> linears;
  std::int32_t next = 0;
  for (const OperationSpec& op : layer.operations) {
    if (op.kind != OpKind::gemm) continue;
    std::int32_t weight = next;
    while (weight < count && !is_weight_of(parameters[static_cast<std::size_t>(weight)], op)) {
      ++weight;
    }
    if (weight == count) continue;
    LinearParameters linear = {&op, next, weight, -1};
    next = weight + 1;
    if (op.bias && next < count) linear.bias = next++;
    linears.push_back(linear);
  }
  return linears;
}

}  // namespace shardwise
