#include "planner/cost/layer/shard_ranks.h"

#include <algorithm>

namespace shardwise {
namespace {

/// Ranks that share a dense state, where the placement shards at all.
std::int64_t dense_ranks(const Layout& layout, Placement placement) {
  const bool both = placement == Placement::shard_both;
  return std::int64_t{layout.dp_shard} * layout.cp * (both ? layout.dp_replicate : 1);
}

}  // namespace

ShardRanks shard_ranks(const Layout& layout, Placement placement) {
  if (placement == Placement::replicate) return {1, 1};
  const bool both = placement == Placement::shard_both;
  const std::int64_t dense = dense_ranks(layout, placement);
  const std::int64_t edp = std::max<std::int64_t>(layout.edp(), 1);
  const std::int64_t outer =
      !both && edp % layout.dp_replicate == 0 ? std::int64_t{layout.dp_replicate} : 1;
  return {dense, edp / outer};
}

}  // namespace shardwise
