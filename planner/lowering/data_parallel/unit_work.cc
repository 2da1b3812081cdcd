#include "planner/lowering/data_parallel/unit_work.h"

#include <cmath>

#include "planner/cost/layer/token_table.h"
#include "planner/cost/step/data_parallel_moves.h"
#include "planner/cost/step/unit_prices.h"

namespace shardwise {

UnitElements unit_sizes(const LoweringContext& context, const StageLayer& layer) {
  const std::int64_t copied = layer.copies_table ? table_elements(context.memories) : 0;
  return unit_elements(context.memories[static_cast<std::size_t>(layer.kind)], copied,
                       context.engine(), context.layout(), context.memory_rules.shard_multiple);
}

std::int32_t UnitTable::collective(CollectiveKind kind, GroupKind group, std::int64_t ranks,
                                   DType dtype, double bytes) {
  if (ranks <= 1 || bytes <= 0) return -1;
  CollectiveWork work;
  work.kind = kind;
  work.group = group;
  work.dtype = dtype;
  work.bytes = std::llround(bytes);
  return builder_.collective_cost(work);
}

UnitCosts::Group UnitTable::reduction(bool routed, std::int64_t elements, std::int64_t padded) {
  const std::int64_t inner = ranks(routed);
  const std::int64_t outer = context_.layout().dp_replicate;
  const double each = context_.gradient_bytes();
  const DType dtype = context_.gradient_dtype();
  const GroupKind group = routed ? GroupKind::edp_shard : GroupKind::dp_shard_cp;
  UnitCosts::Group costs;
  if (context_.placement.optimizer == Placement::replicate) {
    const double whole = each * static_cast<double>(elements);
    costs.reduce = collective(CollectiveKind::all_reduce, group, inner, dtype, whole);
    costs.reduce_outer =
        collective(CollectiveKind::all_reduce, GroupKind::dp_replicate, outer, dtype, whole);
    return costs;
  }
  const double whole = each * static_cast<double>(padded);
  const bool sums = context_.time_rules.fp32_accumulation;
  const bool all = all_reduces_shards(context_.engine(), context_.layout());
  costs.reduce = collective(sums  ? CollectiveKind::all_to_all
                            : all ? CollectiveKind::all_reduce
                                  : CollectiveKind::reduce_scatter,
                            group, inner, dtype, whole);
  if (sums && costs.reduce >= 0) {
    costs.sum = builder_.traffic_cost(
        fp32_sum_bytes(each, static_cast<double>(padded), static_cast<double>(inner)),
        kFp32SumKernels);
  }
  const bool both = context_.placement.optimizer == Placement::shard_both;
  costs.reduce_outer =
      collective(both ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                 GroupKind::dp_replicate, outer, dtype, whole / static_cast<double>(inner));
  return costs;
}

std::int32_t UnitTable::gather(bool routed, std::int64_t padded) {
  return collective(CollectiveKind::all_gather,
                    routed ? GroupKind::edp_shard : GroupKind::dp_shard_cp, ranks(routed),
                    context_.weight_dtype(),
                    context_.time_rules.weight_bytes * static_cast<double>(padded));
}

UnitWork UnitTable::make(const UnitElements& sizes) {
  UnitWork work;
  work.sizes = sizes;
  const TimeRules& rules = context_.time_rules;
  UnitCosts& costs = work.costs;
  costs.dense = reduction(false, sizes.dense, sizes.padded_dense);
  costs.routed = reduction(true, sizes.routed, sizes.padded_routed);
  costs.dense.gather = gather(false, sizes.padded_dense + sizes.padded_frozen);
  costs.routed.gather = gather(true, sizes.padded_routed);

  const std::int64_t part_ranks = context_.layout().reshard_after_forward;
  if (context_.layout().reshards_to_groups()) {
    const double whole = rules.weight_bytes * static_cast<double>(sizes.padded_dense);
    costs.dense.gather_again = collective(CollectiveKind::all_gather, GroupKind::reshard,
                                          part_ranks, context_.weight_dtype(), whole);
    // Read and written.
    costs.reshard = builder_.traffic_cost(2 * whole / static_cast<double>(part_ranks));
  }
  const auto dense = static_cast<double>(sizes.padded_dense) / static_cast<double>(ranks(false));
  const auto routed = static_cast<double>(sizes.padded_routed) / static_cast<double>(ranks(true));
  const auto frozen = static_cast<double>(sizes.padded_frozen) / static_cast<double>(ranks(false));
  if (context_.placement.optimizer == Placement::shard_both) {
    const auto outer = [&](double elements) {
      return collective(CollectiveKind::all_gather, GroupKind::dp_replicate,
                        context_.layout().dp_replicate, context_.weight_dtype(),
                        rules.weight_bytes * elements);
    };
    costs.dense.gather_outer = outer(dense);
    costs.routed.gather_outer = outer(routed);
  }
  // Copies are around collectives: where there is none, nothing is copied.
  const bool gathers = costs.dense.gather >= 0 || costs.routed.gather >= 0;
  const bool reduces = costs.dense.reduce >= 0 || costs.routed.reduce >= 0;
  const MemoryRules& memory = context_.memory_rules;
  if (gathers && context_.engine().main_weights == MainWeights::parameter && memory.casts_weights) {
    costs.cast = builder_.traffic_cost(
        (dense + routed + frozen) * (memory.parameter_bytes + memory.weight_bytes), 1,
        MoveKind::cast);
  }
  if (gathers) {
    costs.copy_out =
        builder_.traffic_cost(rules.gather_copy_bytes * static_cast<double>(sizes.elements()));
  }
  if (reduces) {
    costs.copy_in =
        builder_.traffic_cost(rules.reduce_copy_bytes * static_cast<double>(sizes.trained()));
    // The sum is read and written, the reduced shard read.
    costs.accumulate = builder_.traffic_cost(3 * context_.gradient_bytes() * (dense + routed));
  }
  return work;
}

const UnitWork& UnitTable::of(const StageLayer& layer) {
  std::optional<UnitWork>& work =
      by_kind_[2 * static_cast<std::size_t>(layer.kind) + (layer.copies_table ? 1 : 0)];
  if (!work) work = make(unit_sizes(context_, layer));
  return *work;
}

UnitWork UnitTable::of(const Bucket& root) {
  UnitElements sizes;
  sizes.dense = root.elements;
  sizes.padded_dense = root.padded;
  sizes.padded_whole = true;
  return make(sizes);
}

StageUnits::StageUnits(const LoweringContext& context, std::int32_t stage, UnitTable& table) {
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    for (const StageLayer& layer : chunk.layers) {
      slots_.push_back({{slots_.size(), -1, true, &table.of(layer)}});
    }
  }
  const std::vector<Bucket> buckets = buckets_of(context, stage);
  roots_.reserve(buckets.size());
  for (std::size_t b = buckets.size(); b-- > 0;) {
    const Bucket& bucket = buckets[b];
    if (!bucket.root) continue;
    LayerUnit unit = {size(), static_cast<std::int32_t>(b), true, nullptr};
    unit.work = &roots_.emplace_back(table.of(bucket));
    slots_[bucket.first].push_back(unit);
    unit.completes = false;
    if (bucket.last != bucket.first) slots_[bucket.last].push_back(unit);
  }
}

}  // namespace shardwise
