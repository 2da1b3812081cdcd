#pragma once

#include <cstdint>
#include <stop_token>

#include "planner/cost/collectives/collective_table.h"
#include "planner/cost/software/time_rules.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Context that a layout adds to its stages: everything a leaf of the search varies.
struct LeafContext {
  const TimeRules* rules = nullptr;
  const Layout* layout = nullptr;
  const DataParallelTables* groups = nullptr;
  std::int64_t num_microbatches = 1;
  /// Asked to stop, sweeps layer by layer end early: what is made of them says nothing. None: they
  /// run to their end. Outlives this.
  const std::stop_token* stop = nullptr;
};

/// Whether the ranks that shard states with one another are on more than one node.
inline bool shards_across_nodes(const LeafContext& context) {
  const Layout& layout = *context.layout;
  return std::int64_t{layout.tp} * layout.cp * layout.dp_shard >
         context.rules->cluster->gpus_per_node;
}
/// Whether those that hold the same shards are.
inline bool replicas_across_nodes(const LeafContext& context) {
  const Layout& layout = *context.layout;
  return std::int64_t{layout.tp} * layout.cp * layout.dp_shard * layout.dp_replicate >
         context.rules->cluster->gpus_per_node;
}

}  // namespace shardwise
