#include "executor/engine/rank_place.h"

#include <algorithm>
#include <vector>

#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {

DataParallelPlace place_of(const Layout& layout, std::int64_t rank, std::int64_t ranks) {
  const auto find = [&](GroupKind kind, std::int64_t& size, int& own) {
    const std::vector<std::int64_t> group = group_ranks(layout, kind, rank);
    size = std::ssize(group);
    own = static_cast<int>(std::ranges::find(group, rank) - group.begin());
  };
  DataParallelPlace place;
  find(GroupKind::dp_shard_cp, place.shard_ranks, place.shard_rank);
  find(GroupKind::dp_replicate, place.replicas, place.replica);
  place.world = ranks;
  place.world_rank = static_cast<int>(rank);
  return place;
}

}  // namespace shardwise::exec
