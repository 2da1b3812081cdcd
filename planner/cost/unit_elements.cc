#include "planner/cost/unit_elements.h"

#include "planner/cost/memory.h"
#include "planner/cost/state_bytes.h"
#include "planner/spec/units.h"

namespace shardwise {

UnitElements unit_elements(const LayerMemory& layer, std::int64_t copied,
                           const EngineProfile& engine, const Layout& layout,
                           std::int64_t multiple) {
  const StageParts parts = layer_parts(layer, copied);
  const Unit shard = placed_elements(parts, engine, layout, Placement::shard_inner, multiple);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  UnitElements unit;
  unit.dense = parts.dense;
  unit.routed = parts.routed;
  unit.frozen = parts.frozen;
  unit.padded_dense = shard.dense * ranks.dense;
  unit.padded_routed = shard.routed * ranks.routed;
  unit.padded_frozen = round_up(parts.frozen, ranks.dense);
  return unit;
}

std::int64_t table_elements(std::span<const LayerMemory> by_kind) {
  for (const LayerMemory& layer : by_kind) {
    if (layer.role == LayerRole::embedding) return layer.parameters.vocabulary;
  }
  return 0;
}

}  // namespace shardwise
