#include "planner/cost/layer/gradients_join.h"

#include "planner/cost/layer/shard_ranks.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {

bool gradients_join(const Layout& layout, std::int64_t num_microbatches) {
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  // Without expert parallelism all ranks of tp share the places of experts, and none may be routed.
  const bool shared = ranks.dense > 1 || (layout.ep > 1 && ranks.routed > 1);
  const bool leaves = shared && reduces_each(layout);
  return num_microbatches > 1 && !leaves;
}

}  // namespace shardwise
