#include "planner/cost/unit_elements.h"

#include "planner/cost/memory.h"
#include "planner/cost/root_buckets.h"
#include "planner/cost/state_bytes.h"
#include "planner/spec/units.h"

namespace shardwise {

UnitElements unit_elements(const LayerMemory& layer, std::int64_t copied,
                           const EngineProfile& engine, const Layout& layout,
                           std::int64_t multiple) {
  const bool roots = fills_root_buckets(engine, layout);
  const StageParts parts = layer_parts(layer, roots ? 0 : copied);
  const Unit shard = placed_elements(parts, engine, layout, Placement::shard_inner, multiple);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  UnitElements unit;
  unit.dense = parts.dense;
  unit.routed = parts.routed;
  unit.frozen = parts.frozen;
  unit.padded_dense = shard.dense * ranks.dense;
  unit.padded_routed = shard.routed * ranks.routed;
  unit.padded_frozen = round_up(parts.frozen, ranks.dense);
  unit.padded_whole = pads_whole_units(engine, layout);
  if (roots && is_outside(layer.role)) unit.dense = unit.padded_dense = 0;
  return unit;
}

bool pads_whole_units(const EngineProfile& engine, const Layout& layout) {
  return engine.padding == ShardPadding::unit && layout.zero_stage >= 1;
}

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

bool keeps_shared_table_apart(const EngineProfile& engine, const Layout& layout) {
  return engine.gradient_buffer == GradientBuffer::contiguous && layout.zero_stage >= 1;
}

bool joins_root(const EngineProfile& engine, const Layout& layout, bool own_kernels) {
  return engine.gather == GatherBuffer::rate_limited && engine.keeps_root_gathered &&
         (layout.zero_stage >= 3 || !own_kernels);
}

}  // namespace shardwise
