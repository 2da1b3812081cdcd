#include "planner/cost/state_bytes.h"

#include <algorithm>
#include <numeric>

#include "planner/cost/stage_buffers.h"
#include "planner/cost/unit_room.h"
#include "planner/spec/check.h"
#include "planner/spec/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMainBytes = 4;  // an fp32 gradient

/// Ranks that share a dense state, where the placement shards at all.
std::int64_t dense_ranks(const Layout& layout, Placement placement) {
  const bool both = placement == Placement::shard_both;
  return std::int64_t{layout.dp_shard} * layout.cp * (both ? layout.dp_replicate : 1);
}

/// Elements of one rank when every unit (or tensor) is padded on its own.
Unit sharded_by_unit(const StageParts& parts, const EngineProfile& engine, const ShardRanks& ranks,
                     const Layout& layout, std::int64_t multiple) {
  Unit sum;
  sum.dense = ceil_div(unit_room(parts.copied, finest_ranks(layout).dense, multiple), ranks.dense);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const auto& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    const TrainedRoom room = trained_room(p, layout, multiple);
    Unit one;
    switch (engine.padding) {
      case ShardPadding::bucket:
      case ShardPadding::flat:
        one = {ceil_div(room.dense, ranks.dense), ceil_div(room.routed, ranks.routed)};
        break;
      case ShardPadding::unit:
        one = {round_up(p.dense, ranks.dense * p.chunk_lcm) / ranks.dense,
               round_up(p.routed, ranks.routed * p.chunk_lcm) / ranks.routed};
        break;
      case ShardPadding::row:
      case ShardPadding::tensor:
        for (std::int32_t g = 0; g < p.groups; ++g) {
          const TensorGroup& t = p.group[static_cast<std::size_t>(g)];
          const std::int64_t ways = t.routed ? ranks.routed : ranks.dense;
          const std::int64_t each = engine.padding == ShardPadding::row
                                        ? ceil_div(t.rows, ways) * t.row_elements
                                        : ceil_div(t.rows * t.row_elements, ways);
          (t.routed ? one.routed : one.dense) += each * t.count;
        }
        break;
    }
    sum.dense += one.dense * run.count;
    sum.routed += one.routed * run.count;
  }
  return sum;
}

/// std::lcm, which is slow, for numbers of which one divides the other, as a rule.
std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
  if (a % b == 0) return a;
  return b % a == 0 ? b : std::lcm(a, b);
}

/// Elements of one rank when every bucket is padded at its end. Buckets end with a tensor, so a
/// bucket lacks at most `step` less the greatest common divisor of `step` and all tensors' sizes.
std::int64_t sharded_by_bucket(std::int64_t elements, std::int64_t tensor_divisor,
                               std::int64_t ranks, const EngineProfile& engine, bool overlap) {
  if (elements == 0) return 0;
  const std::int64_t step = common_multiple(ranks, engine.pad_multiple);
  SHARDWISE_CHECK(step > 0, engine.name);
  if (tensor_divisor % step == 0) return elements / ranks;
  const std::int64_t limit =
      std::max(engine.bucket_elements, engine.bucket_elements_per_rank * ranks);
  const std::int64_t buckets = overlap && limit > 0 ? ceil_div(elements, limit) : 1;
  const std::int64_t lacking = step - std::gcd(step, tensor_divisor);
  return round_up(elements + (buckets - 1) * lacking, step) / ranks;
}

/// Matrices of a rank that are kept in 8 bits, and casts of them that stay.
void add_narrow(StageStates& s, const StageParts& parts, const StageContext& context,
                const ShardRanks& ranks) {
  const MemoryRules& rules = *context.rules;
  const std::int64_t whole = parts.narrow_dense + parts.narrow_routed;
  if (whole == 0) return;
  const bool sharded = context.layout->zero_stage >= 3;
  const bool kept = rules.narrow_bytes < rules.weight_bytes &&
                    rules.engine->main_weights == MainWeights::separate;
  if (kept) {
    const std::int64_t held = sharded ? ceil_div(parts.narrow_dense, ranks.dense) +
                                            ceil_div(parts.narrow_routed, ranks.routed)
                                      : whole;
    s.narrow_weights = {held, rules.narrow_bytes};
    if (sharded) return;  // gathered units are transposed when they are used
  }
  s.narrow_casts = {ceil_div(whole, rules.narrow_packed), rules.narrow_copies};
  if (rules.narrow_scaled > 0) {
    s.narrow_scales = {ceil_div(whole, rules.narrow_scaled),
                       std::int64_t{rules.narrow_copies} * rules.narrow_scale_bytes};
  }
}

}  // namespace

ShardRanks shard_ranks(const Layout& layout, Placement placement) {
  if (placement == Placement::replicate) return {1, 1};
  const bool both = placement == Placement::shard_both;
  const std::int64_t dense = dense_ranks(layout, placement);
  const std::int64_t edp = std::max<std::int64_t>(layout.edp(), 1);
  const std::int64_t outer =
      !both && edp % layout.dp_replicate == 0 ? std::int64_t{layout.dp_replicate} : 1;
  return {dense, edp / outer};
}

Unit placed_elements(const StageParts& parts, const EngineProfile& engine, const Layout& layout,
                     Placement placement, std::int64_t multiple) {
  if (placement == Placement::replicate) {
    if (multiple == 1) return {parts.dense, parts.routed};
    return sharded_by_unit(parts, engine, {1, 1}, layout, multiple);
  }
  const ShardRanks ranks = parts.routed == 0 ? ShardRanks{dense_ranks(layout, placement), 1}
                                             : shard_ranks(layout, placement);
  if (engine.padding == ShardPadding::bucket) {
    return {sharded_by_bucket(parts.dense, parts.tensor_divisor, ranks.dense, engine,
                              layout.overlap_grad_reduce),
            sharded_by_bucket(parts.routed, parts.tensor_divisor, ranks.routed, engine,
                              layout.overlap_grad_reduce)};
  }
  const bool divides = multiple == 1 && engine.padding != ShardPadding::unit &&
                       parts.rows_divisor > 0 && parts.rows_divisor % ranks.dense == 0 &&
                       parts.rows_divisor % ranks.routed == 0;
  if (divides) return {parts.dense / ranks.dense, parts.routed / ranks.routed};
  return sharded_by_unit(parts, engine, ranks, layout, multiple);
}

Unit held_elements(const StageParts& parts, const MemoryRules& rules, const Layout& layout,
                   Placement placement) {
  const auto placed = [&](Placement p) {
    return placed_elements(parts, *rules.engine, layout, p, rules.shard_multiple);
  };
  const StatePlacement all = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  if (!rules.whole_pieces || all.optimizer == Placement::replicate) return placed(placement);
  const Unit finest = placed(all.optimizer);
  const ShardRanks ranks = shard_ranks(layout, all.optimizer);
  const ShardRanks of = shard_ranks(layout, placement);
  return {finest.dense * (ranks.dense / of.dense), finest.routed * (ranks.routed / of.routed)};
}

std::int64_t gradient_element_bytes(const MemoryRules& rules, const Layout& layout) {
  const std::int64_t narrow = rules.weight_bytes;
  return layout.fp32_gradients ? std::max(narrow, kMainBytes) : narrow;
}

std::int64_t main_element_bytes(const MemoryRules& rules, const Layout& layout) {
  return rules.main_bytes - (layout.store_param_remainders ? rules.weight_bytes : 0);
}

StageStates stage_states(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const EngineProfile& engine = *rules.engine;
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const auto placed = [&](Placement p) {
    return held_elements(parts, rules, layout, p).elements();
  };
  const std::int64_t parameters = placed(placement.parameters);
  const std::int64_t gradients =
      placement.gradients == placement.parameters ? parameters : placed(placement.gradients);
  const std::int64_t optimizer =
      placement.optimizer == placement.parameters ? parameters : placed(placement.optimizer);

  StageStates s;
  const bool in_parameters = engine.main_weights == MainWeights::parameter;
  const bool offloads = layout.offload_optimizer;
  const std::int64_t frozen_ways = shard_ranks(layout, placement.parameters).dense;
  s.frozen_weights = {ceil_div(parts.frozen, frozen_ways), rules.weight_bytes};
  add_narrow(s, parts, context, shard_ranks(layout, placement.parameters));
  if (in_parameters) {
    s.main_weights = {parameters, rules.parameter_bytes};
  } else {
    s.weights = {parameters - s.narrow_weights.count, rules.weight_bytes};
    if (!offloads) s.main_weights = {optimizer, main_element_bytes(rules, layout)};
  }

  std::int64_t gradient_bytes = rules.weight_bytes;
  if (engine.gradient_buffer == GradientBuffer::copy_in) {
    if (in_parameters) gradient_bytes = rules.parameter_bytes;
    const bool on_host = offloads && engine.offloads_gradients;
    if (!on_host) s.late_gradients = {gradients, gradient_bytes};
  } else {
    gradient_bytes = gradient_element_bytes(rules, layout);
    s.gradients = {gradients, gradient_bytes};
  }
  s.received_gradients = received_after_backward(parts, context);
  if (engine.flattens_gradients) s.flat_gradients = {gradients, gradient_bytes};
  if (offloads) return s;
  s.moments = {optimizer, rules.moment_bytes};
  s.step_scratch = {optimizer, engine.optimizer_scratch_bytes};
  if (engine.casts_gradients_for_optimizer && rules.main_bytes > gradient_bytes) {
    s.cast_gradients = {optimizer, rules.main_bytes};
  }
  return s;
}

}  // namespace shardwise
