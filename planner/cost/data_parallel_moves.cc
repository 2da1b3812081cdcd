#include "planner/cost/data_parallel_moves.h"

#include <algorithm>

#include "planner/cost/unit_prices.h"

namespace shardwise {
namespace {

/// Parameters are sharded: each unit is gathered and its gradients are reduced on their own.
void move_units(DataParallelMoves& moves, const StageTimes& stages, const LeafContext& context) {
  const UnitPrices prices(context);
  const Layout& layout = *context.layout;
  const StageTime& stage = stages.slowest;
  for (std::size_t i = 0; i < static_cast<std::size_t>(stage.kinds); ++i) {
    const auto dense = static_cast<double>(stage.units[i].elements.dense);
    const auto routed = static_cast<double>(stage.units[i].elements.routed);
    moves.units[i] = {prices.gather(dense, routed), prices.gather_again(dense, routed),
                      prices.reduce(dense, routed), prices.reduce_outer(dense, routed)};
  }
  // Copies into and out of the communication buffers are the compute stream's work.
  const auto elements = static_cast<double>(stage.elements.dense + stage.elements.routed);
  const auto copy = [&](double bytes) {
    if (bytes <= 0 || layout.dp_shard * layout.cp == 1) return Seconds(0);
    return memory_bound_time(context.rules->cluster->gpu,
                             Bytes(static_cast<std::int64_t>(bytes * elements)));
  };
  double copied = context.rules->gather_copy_bytes * (layout.reshard_after_forward == 0 ? 1 : 2);
  // A rank's part of what forward gathered is read and written.
  if (layout.reshards_to_groups()) {
    copied += 2.0 * context.rules->weight_bytes / layout.reshard_after_forward;
  }
  moves.copies_out = copy(copied);
  moves.copies_in = copy(context.rules->reduce_copy_bytes);
  if (prices.placement().optimizer == Placement::shard_both) {
    moves.outer_gather = prices.gather_outer(static_cast<double>(stage.elements.dense),
                                             static_cast<double>(stage.elements.routed));
  }
}

/// Whole parameters on every rank: gradients are reduced and parameters gathered in buckets.
void move_buckets(DataParallelMoves& moves, const StageTimes& stages, const LeafContext& context) {
  const UnitPrices prices(context);
  const Layout& layout = *context.layout;
  const EngineProfile& engine = *context.rules->engine;
  const StageTime& stage = stages.first;
  const auto dense = static_cast<double>(stage.elements.dense);
  const auto routed = static_cast<double>(stage.elements.routed);

  const double bucket = std::max(
      {static_cast<double>(engine.bucket_elements),
       static_cast<double>(engine.bucket_elements_per_rank * layout.dp() * layout.cp), 1.0});
  double units = 0;
  for (std::int32_t i = 0; i < stage.kinds; ++i) {
    units += stage.units[static_cast<std::size_t>(i)].count;
  }
  // A contiguous buffer is one bucket where nothing would overlap.
  const bool single =
      engine.gradient_buffer == GradientBuffer::contiguous && !layout.overlap_grad_reduce;
  const double buckets =
      single ? 1 : std::max(1.0, engine.bucket_elements > 0 ? (dense + routed) / bucket : units);
  moves.beside_compute = std::max(0.0, 1 - 1 / buckets);

  const Seconds inner = prices.reduce(dense / buckets, routed / buckets) * buckets;
  const Seconds outer = prices.reduce_outer(dense / buckets, routed / buckets) * buckets;
  // What backward makes last, and forward needs first, has the first unit's compute beside it at
  // most, which is next to none for the token table: both that and the unit after it are waited
  // for. A bucket holds tensors that were there before.
  const UnitTime& first = stage.units[0];
  const bool two = first.root && stage.kinds > 1;
  const Unit next = two ? stage.units[1].elements : Unit{};
  const double open = engine.bucket_elements > 0 ? bucket / 2 : 0;
  const auto in_last = [&](double all, std::int64_t unit) {
    return std::min(all, std::max(all / buckets, static_cast<double>(unit) + open));
  };
  const double last_dense = in_last(dense, first.elements.dense + next.dense);
  const double last_routed = in_last(routed, first.elements.routed + next.routed);
  // The outer axis follows each inner reduction on a stream of its own.
  const Seconds last_inner = std::min(inner, prices.reduce(last_dense, last_routed));
  const Seconds last_outer = std::min(outer, prices.reduce_outer(last_dense, last_routed));
  moves.reduce = inner + outer;
  moves.reduce_last = last_inner + last_outer;
  moves.reduce_chain = moves.reduce_last + std::max(inner - last_inner, outer - last_outer);
  if (prices.sums_in_compute()) {
    moves.sums = prices.sums(dense / buckets, routed / buckets) * buckets;
  }

  if (prices.placement().optimizer != Placement::replicate) {
    moves.gather = prices.gather(dense / buckets, routed / buckets) * buckets;
    if (prices.placement().optimizer == Placement::shard_both) {
      moves.gather += prices.gather_outer(dense / buckets, routed / buckets) * buckets;
    }
    moves.gather_first = std::min(moves.gather, prices.gather(last_dense, last_routed));
  }
}

}  // namespace

DataParallelMoves data_parallel_moves(const StageTimes& stages, const LeafContext& context) {
  const Layout& layout = *context.layout;
  DataParallelMoves moves;
  moves.across_nodes = shards_across_nodes(context);
  const Placement parameters =
      placement_of(layout.zero_stage, layout.outer_shards_optimizer).parameters;
  if (parameters == Placement::replicate) {
    move_buckets(moves, stages, context);
  } else {
    move_units(moves, stages, context);
  }
  return moves;
}

double outer_elements(const Layout& layout, double dense, double routed) {
  if (layout.dp_replicate == 1) return 0;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks shards = shard_ranks(layout, Placement::shard_inner);
  return dense / inner_parts(placement, shards.dense) +
         routed / inner_parts(placement, shards.routed);
}

double gradient_bytes(const TimeRules& rules, const Layout& layout) {
  if (rules.reduce_bytes > 0) return rules.reduce_bytes;
  return layout.fp32_gradients ? 4.0 : std::max(rules.weight_bytes, 2.0);
}

double fp32_sum_bytes(double gradient_bytes, double elements, double ranks) {
  constexpr double kFp32 = 4;
  return gradient_bytes * elements + (2 * kFp32 + gradient_bytes) * elements / ranks;
}

}  // namespace shardwise
