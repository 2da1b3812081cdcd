#include "planner/cost/memory/unit_elements.h"

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/spec/text/units.h"

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

bool keeps_shared_table_apart(const EngineProfile& engine, const Layout& layout) {
  return engine.gradient_buffer == GradientBuffer::contiguous && layout.zero_stage >= 1;
}

}  // namespace shardwise
