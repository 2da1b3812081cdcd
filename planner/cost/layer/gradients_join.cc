#include "planner/cost/layer/gradients_join.h"

#include "planner/cost/layer/shard_ranks.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {

bool gradients_join(const Layout& layout, std::int64_t num_microbatches) {
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const bool leaves = ranks.dense * ranks.routed > 1 && reduces_each(layout);
  return num_microbatches > 1 && !leaves;
}

}  // namespace shardwise
