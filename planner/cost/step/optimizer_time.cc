#include "planner/cost/step/optimizer_time.h"

#include <algorithm>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/step/data_parallel_moves.h"

namespace shardwise {

double optimizer_bytes(const TimeRules& rules, const Layout& layout) {
  constexpr double kWhole = 2 * 4 + 2;  // fp32 read and written, bf16 written
  constexpr double kHalves = 2 * (2 + 2);
  return rules.optimizer_bytes - (layout.store_param_remainders ? kWhole - kHalves : 0);
}

OptimizerTime optimizer_time(const StageTimes& stages, const LeafContext& context) {
  const TimeRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  const GpuSpec& gpu = rules.cluster->gpu;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const auto held = [&](Placement p) {
    const ShardRanks ranks = shard_ranks(layout, p);
    const auto of = [&](const Unit& stage) {
      return static_cast<double>(stage.dense) / static_cast<double>(ranks.dense) +
             static_cast<double>(stage.routed) / static_cast<double>(ranks.routed);
    };
    return std::max(of(stages.most_dense), of(stages.most_routed));
  };
  const auto moved = [&](double bytes, MoveKind kind = MoveKind::copy) {
    return memory_bound_time(gpu, Bytes(static_cast<std::int64_t>(bytes)), kind, Pass::forward,
                             rules.precision);
  };
  const double elements = held(placement.optimizer);
  const double gradient = gradient_bytes(rules, layout);

  OptimizerTime time;
  // Where weights travel in 8 bits, shards are cast, else each rank casts all it computes with.
  time.update += moved(rules.weight_cast_bytes *
                       (rules.weight_bytes < 2 ? elements : held(Placement::replicate)));
  if (rules.clears_buffer) time.update += moved(gradient * held(placement.gradients));
  if (layout.offload_optimizer) {
    // Gradients down, update on the host, weights up; the norm is taken on the device.
    time.update += moved(4 * elements);
    time.update += Seconds(elements / rules.host_optimizer_elements_per_s);
    time.transfer = Bytes(static_cast<std::int64_t>((gradient + rules.weight_bytes) * elements)) /
                    rules.cluster->host_link;
  } else {
    time.update +=
        moved(rules.shared_norm_bytes * held(Placement::shard_both), MoveKind::gradient_norm) +
        moved(optimizer_bytes(rules, layout) * elements, MoveKind::optimizer);
    // Where the host has waited it issues the kernels while the first ones run.
    if (rules.waits_for_norm) {
      const double kernels = rules.optimizer_kernels * static_cast<double>(stages.most_tensors);
      const Seconds issue = rules.issue * (kernels + (rules.clears_buffer ? 1 : 0));
      time.update = std::max(time.update + std::min(rules.issue, issue), issue);
    }
  }

  const DataParallelTables& groups = *context.groups;
  const std::int64_t over_tp =
      layout.sequence_parallel ? stages.slowest.replicated : stages.slowest.head_norms;
  time.finalize += groups.tp_all_reduce(gradient * static_cast<double>(over_tp));
  if (stages.slowest.copied_heads > 0) {
    time.finalize +=
        groups.tp_all_reduce(gradient * static_cast<double>(stages.slowest.copied_heads));
  }
  if (stages.tied_elements > 0) {
    time.finalize += groups.tied_all_reduce(gradient * static_cast<double>(stages.tied_elements));
  }
  // Counts and the number of tokens are summed over ranks of a stage: small messages, priced over
  // all ranks.
  if (stages.slowest.counted_experts > 0) {
    const double counts = kCountBytes * static_cast<double>(stages.slowest.counted_experts);
    time.finalize += groups.world_all_reduce(counts) + moved(kExpertBiasPasses * counts);
  }
  if (rules.per_token_loss) {
    time.finalize += groups.world_all_reduce(kCountBytes) * (layout.pp > 1 ? 2 : 1) +
                     moved(2 * gradient * held(placement.gradients));
  }
  time.finalize += groups.world_all_reduce(4);
  return time;
}

}  // namespace shardwise
