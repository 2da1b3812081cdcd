#include "planner/cost/memory/unit_room.h"

#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

ShardRanks finest_ranks(const Layout& layout) {
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  return shard_ranks(layout, placement.optimizer);
}

TrainedRoom trained_room(const LayerParameters& p, const Layout& layout, std::int64_t multiple) {
  if (multiple == 1) return {p.dense, p.routed};
  const ShardRanks ranks = finest_ranks(layout);
  return {unit_room(p.dense, ranks.dense, multiple), unit_room(p.routed, ranks.routed, multiple)};
}

}  // namespace shardwise
