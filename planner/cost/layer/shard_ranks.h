#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

/// Ranks that share dense and routed states: each divides its elements where a placement shards.
struct ShardRanks {
  std::int64_t dense = 1;
  std::int64_t routed = 1;
};
/// dp_shard x cp for dense parameters (context-parallel ranks hold the same weights, so they share
/// states too), the inner part of edp for routed experts; shard_both multiplies by dp_replicate.
ShardRanks shard_ranks(const Layout& layout, Placement placement);

}  // namespace shardwise
