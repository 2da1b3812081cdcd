#include "planner/cost/layer/gradients_join.h"

#include "planner/cost/layer/shard_ranks.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

bool gradients_join(const Layout& layout, std::int64_t num_microbatches) {
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const bool leaves = placement.gradients != Placement::replicate &&
                      ranks.dense * ranks.routed > 1 && layout.reduce_every_microbatch;
  return num_microbatches > 1 && !leaves;
}

}  // namespace shardwise
