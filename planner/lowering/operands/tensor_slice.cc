#include "planner/lowering/operands/tensor_slice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/cost/layer/key_heads.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// The widths of queries, keys and values where one product makes all and this is its matrix or
/// bias: the first of a layer's parameters with as many dimensions that is cut by columns.
std::vector<std::int64_t> joined_widths(const LayerSpec& layer, std::int32_t parameter) {
  const auto joined = std::ranges::find_if(layer.operations, [](const OperationSpec& op) {
    return op.name.ends_with("qkv_proj") && op.tp == TpSplit::column;
  });
  const ParameterSpec& own = layer.parameters[static_cast<std::size_t>(parameter)];
  if (joined == layer.operations.end() || own.tp != TpSplit::column) return {};
  const auto first = std::ranges::find_if(layer.parameters, [&](const ParameterSpec& each) {
    return each.tp == TpSplit::column && each.shape.size() == own.shape.size();
  });
  if (&*first != &own) return {};
  const auto core = std::ranges::find(layer.operations, OpKind::attention, &OperationSpec::kind);
  const std::int64_t keys = std::int64_t{core->kv_heads} * core->qk_head_dim;
  const std::int64_t values = std::int64_t{core->kv_heads} * core->v_head_dim;
  return {std::int64_t{core->heads} * core->qk_head_dim, keys, values};
}

}  // namespace

TensorCut tensor_cut(const LayerSpec& layer, std::int32_t parameter, const EngineProfile& engine,
                     const Layout& layout) {
  const ParameterSpec& spec = layer.parameters[static_cast<std::size_t>(parameter)];
  if (layout.tp == 1 || spec.tp_dim < 0) return {};
  const auto dimension = static_cast<std::size_t>(spec.tp_dim);
  const std::int64_t extent = spec.shape[dimension];
  std::vector<std::int64_t> pieces = joined_widths(layer, parameter);
  if (pieces.empty()) {
    const bool table = spec.tp == TpSplit::vocab;
    pieces = {table ? padded_vocabulary(extent, engine.vocabulary_multiple, layout.tp) : extent};
  }
  const std::int64_t copies = parameter_copies(layer, parameter, engine, layout);
  const std::int64_t ways = layout.tp / copies;
  for (const std::int64_t piece : pieces) SHARDWISE_CHECK(piece % ways == 0, spec.name);
  TensorCut cut = cut_along(spec.shape, dimension, ways, std::move(pieces));
  cut.copies = copies;
  return cut;
}

TensorCut cut_along(const std::vector<std::int64_t>& shape, std::size_t dimension,
                    std::int64_t ways, std::vector<std::int64_t> pieces) {
  TensorCut cut;
  cut.ways = ways;
  cut.dimension = static_cast<std::int64_t>(dimension);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < dimension) cut.outer *= shape[d];
    if (d > dimension) cut.inner *= shape[d];
  }
  cut.extent = shape[dimension];
  cut.pieces = std::move(pieces);
  return cut;
}

void for_slice_runs(const TensorCut& cut, int part_number, std::int64_t first, std::int64_t count,
                    const std::function<void(const SliceRun&)>& visit) {
  std::int64_t row = 0;  // elements of the part in one step before the dimension
  for (const std::int64_t piece : cut.pieces) row += piece / cut.ways * cut.inner;
  const std::int64_t whole_row = cut.extent * cut.inner;
  const std::int64_t end = first + count;
  for (std::int64_t at = first; at < end;) {
    std::int64_t rest = at % row;
    std::int64_t begin = 0;  // of the piece, steps of the whole
    std::size_t p = 0;
    for (; rest >= cut.pieces[p] / cut.ways * cut.inner; ++p) {
      rest -= cut.pieces[p] / cut.ways * cut.inner;
      begin += cut.pieces[p];
    }
    const std::int64_t own = cut.pieces[p] / cut.ways * cut.inner;
    const std::int64_t in_row = (begin * cut.inner) + part_number * own + rest;
    const std::int64_t left = std::min(own - rest, end - at);
    const std::int64_t filled = std::clamp<std::int64_t>(whole_row - in_row, 0, left);
    if (filled > 0) visit({at, at / row * whole_row + in_row, filled});
    if (filled < left) visit({at + filled, -1, left - filled});
    at += left;
  }
}

std::int64_t filled_part(const TensorCut& cut, std::int64_t part_number) {
  std::int64_t steps = 0;
  std::int64_t begin = 0;
  for (const std::int64_t piece : cut.pieces) {
    const std::int64_t own = piece / cut.ways;
    steps += std::clamp<std::int64_t>(cut.extent - (begin + part_number * own), 0, own);
    begin += piece;
  }
  return cut.outer * steps * cut.inner;
}

void for_part_runs(const TensorCut& cut, std::int64_t first, std::int64_t count,
                   const std::function<void(const PartRun&)>& visit) {
  std::int64_t row = 0;  // elements of a part in one step before the dimension
  for (const std::int64_t piece : cut.pieces) row += piece / cut.ways * cut.inner;
  const std::int64_t whole_row = cut.extent * cut.inner;
  const std::int64_t end = first + count;
  for (std::int64_t at = first; at < end;) {
    std::int64_t rest = at % whole_row;
    std::int64_t begin = 0;  // of the piece in a row of the part
    std::size_t p = 0;
    for (; rest >= cut.pieces[p] * cut.inner; ++p) {
      rest -= cut.pieces[p] * cut.inner;
      begin += cut.pieces[p] / cut.ways * cut.inner;
    }
    const std::int64_t own = cut.pieces[p] / cut.ways * cut.inner;
    const std::int64_t to_row_end = whole_row - at % whole_row;
    const std::int64_t run = std::min({own - rest % own, to_row_end, end - at});
    visit({at, rest / own, at / whole_row * row + begin + rest % own, run});
    at += run;
  }
}

}  // namespace shardwise
