#pragma once

#include <cstdint>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/step/data_parallel_moves.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

/// Parts in which the inner axis leaves a gradient that it reduces.
inline double inner_parts(const StatePlacement& placement, std::int64_t shards) {
  return placement.optimizer == Placement::replicate ? 1.0 : static_cast<double>(shards);
}

/// Reading of a price: the time a collective takes.
struct InSeconds {
  Seconds operator()(const CollectivePrice& price, double bytes) const { return price(bytes); }
};
/// And how long one link of a tier is busy with it.
struct OnWire {
  std::size_t tier = 0;
  Seconds operator()(const CollectivePrice& price, double bytes) const {
    return price.on_wire(tier, bytes);
  }
};

/// InternEvo's ZeRO-1 over all ranks: its gradients are all-reduced, each rank then updates the
/// tensors that are its own. Under hybrid sharding the same is taken to be a node's reduction and
/// the nodes' after it.
/// Source: InternLM/InternEvo@c628a8c8:internlm/solver/optimizer/hybrid_zero_optim.py, reduce_rank;
/// utils.py, reduce_tensor.
inline bool all_reduces_shards(const EngineProfile& engine, const Layout& layout) {
  const bool own_tensors = engine.padding == ShardPadding::flat &&
                           engine.main_weights == MainWeights::separate &&
                           engine.casts_gradients_for_optimizer;
  return own_tensors && layout.zero_stage == 1 && layout.dp_replicate == 1;
}

/// Prices to move one unit of parameters, or its gradients, over the data-parallel axes of a
/// layout. Elements are those of this rank before they are sharded.
class UnitPrices {
 public:
  explicit UnitPrices(const LeafContext& context)
      : rules_(*context.rules),
        layout_(*context.layout),
        groups_(*context.groups),
        placement_(
            placement_of(context.layout->zero_stage, context.layout->outer_shards_optimizer)),
        shards_(shard_ranks(*context.layout, Placement::shard_inner)),
        gradient_(gradient_bytes(rules_, *context.layout)),
        weight_(rules_.weight_bytes) {}

  const TimeRules& rules() const { return rules_; }
  const StatePlacement& placement() const { return placement_; }

  /// Sharded to whole, over the inner axis.
  template <class Read = InSeconds>
  Seconds gather(double dense, double routed, Read read = {}) const {
    return read(groups_.dense.all_gather, weight_ * dense) +
           read(groups_.routed.all_gather, weight_ * routed);
  }
  /// The same in backward, of what forward left: all shards, those of a smaller group, or it whole.
  template <class Read = InSeconds>
  Seconds gather_again(double dense, double routed, Read read = {}) const {
    if (layout_.reshard_after_forward == 0) return Seconds(0);
    if (layout_.reshards_to_groups()) return read(groups_.reshard, weight_ * (dense + routed));
    return gather(dense, routed, read);
  }
  /// Partial to sharded over the inner axis, or to whole where nothing is sharded. Sums in fp32 are
  /// part of it where they run beside compute, as communication does.
  Seconds reduce(double dense, double routed) const {
    const Seconds moved = reduce_moves(dense, routed);
    return sums_beside_compute() ? moved + sums(dense, routed) : moved;
  }
  template <class Read = InSeconds>
  Seconds reduce_moves(double dense, double routed, Read read = {}) const {
    const auto of = [&](const DataParallelTables::Group& group) -> const CollectivePrice& {
      const bool whole = placement_.optimizer == Placement::replicate ||
                         all_reduces_shards(*rules_.engine, layout_);
      if (whole) return group.all_reduce;
      return rules_.fp32_accumulation ? group.all_to_all : group.reduce_scatter;
    };
    return read(of(groups_.dense), gradient_ * dense) +
           read(of(groups_.routed), gradient_ * routed);
  }
  /// The outer axis, on what the inner reduction leaves.
  template <class Read = InSeconds>
  Seconds reduce_outer(double dense, double routed, Read read = {}) const {
    const double d = gradient_ * dense / inner_parts(placement_, shards_.dense);
    const double e = gradient_ * routed / inner_parts(placement_, shards_.routed);
    if (placement_.optimizer == Placement::shard_both) {
      return read(groups_.dense_outer.reduce_scatter, d) +
             read(groups_.routed_outer.reduce_scatter, e);
    }
    return read(groups_.dense_outer.all_reduce, d) + read(groups_.routed_outer.all_reduce, e);
  }
  /// Weights that the optimizer updated in shards of the outer axis too.
  template <class Read = InSeconds>
  Seconds gather_outer(double dense, double routed, Read read = {}) const {
    const double d = weight_ * dense / static_cast<double>(shards_.dense);
    const double e = weight_ * routed / static_cast<double>(shards_.routed);
    return read(groups_.dense_outer.all_gather, d) + read(groups_.routed_outer.all_gather, e);
  }
  /// Sums of what all-to-alls brought, in fp32; nothing without them.
  Seconds sums(double dense, double routed) const {
    if (!rules_.fp32_accumulation) return Seconds(0);
    return sum(dense, shards_.dense) + sum(routed, shards_.routed);
  }
  /// Megatron sums in fp32 on the stream that waits.
  bool sums_in_compute() const {
    return sums_in_fp32() && rules_.engine->gradient_buffer == GradientBuffer::contiguous;
  }

 private:
  bool sums_in_fp32() const {
    return rules_.fp32_accumulation && placement_.optimizer != Placement::replicate;
  }
  bool sums_beside_compute() const { return sums_in_fp32() && !sums_in_compute(); }
  Seconds sum(double elements, std::int64_t ranks) const {
    if (elements <= 0 || ranks <= 1) return Seconds(0);
    const double bytes = fp32_sum_bytes(gradient_, elements, static_cast<double>(ranks));
    return memory_bound_time(rules_.cluster->gpu, Bytes(static_cast<std::int64_t>(bytes)));
  }

  const TimeRules& rules_;
  const Layout& layout_;
  const DataParallelTables& groups_;
  StatePlacement placement_;
  ShardRanks shards_;
  double gradient_;
  double weight_;
};

}  // namespace shardwise
