#include "executor/engine/rank_place.h"

#include <algorithm>
#include <vector>

#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {
namespace {

int place_in(const std::vector<std::int64_t>& group, std::int64_t rank) {
  return static_cast<int>(std::ranges::find(group, rank) - group.begin());
}

}  // namespace

DataParallelPlace place_of(const Layout& layout, std::int64_t rank) {
  const auto find = [&](GroupKind kind, std::int64_t& size, int& own) {
    const std::vector<std::int64_t> group = group_ranks(layout, kind, rank);
    size = std::ssize(group);
    own = place_in(group, rank);
  };
  DataParallelPlace place;
  find(GroupKind::dp_shard_cp, place.shard_ranks, place.shard_rank);
  find(GroupKind::dp_replicate, place.replicas, place.replica);
  find(GroupKind::dp_cp, place.stage_ranks, place.stage_rank);
  find(GroupKind::tp, place.tp_ranks, place.tp_rank);
  return place;
}

std::vector<std::int64_t> table_ranks(const Layout& layout, std::int64_t rank) {
  const std::vector<std::int64_t> stages = group_ranks(layout, GroupKind::pp, rank);
  const GroupKind shards =
      layout.outer_shards_optimizer ? GroupKind::dp_cp : GroupKind::dp_shard_cp;
  std::vector<std::int64_t> ranks = group_ranks(layout, shards, stages.front());
  const std::vector<std::int64_t> last = group_ranks(layout, shards, stages.back());
  ranks.insert(ranks.end(), last.begin(), last.end());
  return ranks;
}

std::int32_t stage_of(const Layout& layout, std::int64_t rank) {
  return place_in(group_ranks(layout, GroupKind::pp, rank), rank);
}

}  // namespace shardwise::exec
