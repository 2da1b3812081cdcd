#include "planner/cost/step/data_parallel_moves.h"

#include <algorithm>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/step/unit_prices.h"
#include "planner/schedule/gathers_once.h"

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
  auto elements = static_cast<double>(stage.elements.dense + stage.elements.routed);
  for (std::size_t i = 0; i < static_cast<std::size_t>(stage.kinds); ++i) {
    if (moves.units[i].gather > Seconds(0)) continue;  // of units on one rank nothing is copied
    const UnitTime& unit = stage.units[i];
    elements -= unit.count * static_cast<double>(unit.elements.dense + unit.elements.routed);
  }
  const auto copy = [&](double bytes) {
    if (bytes <= 0 || elements <= 0) return Seconds(0);
    return memory_bound_time(context.rules->cluster->gpu,
                             Bytes(static_cast<std::int64_t>(bytes * elements)));
  };
  double copied = context.rules->gather_copy_bytes * (layout.reshard_after_forward == 0 ? 1 : 2);
  // A rank's part of what forward gathered is read and written.
  if (layout.reshards_to_groups()) {
    const double part = 2.0 * context.rules->weight_bytes / layout.reshard_after_forward;
    const bool once = keeps_parts(layout, *context.rules->engine);
    if (once) moves.copies_once = copy(part);
    if (!once) copied += part;
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

  const double bucket = std::max(static_cast<double>(bucket_limit(engine, layout)), 1.0);
  double units = 0;
  for (std::int32_t i = 0; i < stage.kinds; ++i) {
    units += stage.units[static_cast<std::size_t>(i)].count;
  }
  // A contiguous buffer is one bucket where nothing would overlap.
  const bool single =
      engine.gradient_buffer == GradientBuffer::contiguous && !layout.overlap_grad_reduce;
  const double buckets =
      single ? 1 : std::max(1.0, engine.bucket_elements > 0 ? (dense + routed) / bucket : units);

  moves.reduce = prices.reduce(dense / buckets, routed / buckets) * buckets;
  moves.reduce_outer = prices.reduce_outer(dense / buckets, routed / buckets) * buckets;

  if (prices.placement().optimizer != Placement::replicate) {
    moves.gather = prices.gather(dense / buckets, routed / buckets) * buckets;
    if (prices.placement().optimizer == Placement::shard_both) {
      moves.gather += prices.gather_outer(dense / buckets, routed / buckets) * buckets;
    }
  }
}

}  // namespace

DataParallelMoves data_parallel_moves(const StageTimes& stages, const LeafContext& context) {
  const Layout& layout = *context.layout;
  DataParallelMoves moves;
  const Placement parameters =
      placement_of(layout.zero_stage, layout.outer_shards_optimizer).parameters;
  if (parameters == Placement::replicate) {
    move_buckets(moves, stages, context);
  } else {
    move_units(moves, stages, context);
  }
  return moves;
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
