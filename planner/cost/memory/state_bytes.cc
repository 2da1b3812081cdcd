#include "planner/cost/memory/state_bytes.h"

#include <algorithm>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/bitsandbytes_moments.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/rank_part.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/sub_groups.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMainGradientBytes = 4;  // an fp32 gradient
constexpr std::int64_t kFp64Bytes = 8;
/// Of an expert: its bias and the count of its tokens in fp32. transformers has the bias alone.
/// Source: Megatron-LM@d98e8a64:megatron/core/transformer/moe/router.py:181-198;
/// pytorch/torchtitan@003edbe5:torchtitan/models/moe/moe.py, expert_bias and tokens_per_expert.
constexpr std::int64_t kRouterBytes = 8;

/// Elements of one rank when every unit (or tensor) is padded on its own.
Unit sharded_by_unit(const StageParts& parts, const EngineProfile& engine, const ShardRanks& ranks,
                     const Layout& layout, std::int64_t multiple) {
  Unit sum;
  const bool roots = fills_root_buckets(engine, layout);
  if (roots) {
    for (const RootBucket& bucket : root_buckets(parts, engine, layout)) {
      sum.dense += bucket.padded / ranks.dense;
    }
  } else {
    sum.dense =
        ceil_div(unit_room(parts.copied, finest_ranks(layout).dense, multiple), ranks.dense);
  }
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const auto& run = parts.run[static_cast<std::size_t>(r)];
    if (roots && is_outside(run.layer->role)) continue;
    const LayerParameters& p = run.layer->parameters;
    const TrainedRoom room = trained_room(p, layout, multiple);
    Unit one;
    switch (engine.padding) {
      case ShardPadding::bucket:
      case ShardPadding::flat:
        one = {ceil_div(room.dense, ranks.dense), ceil_div(room.routed, ranks.routed)};
        break;
      case ShardPadding::unit: {
        // Whatever of it is sharded, for the state that most ranks share.
        const std::int64_t dense = std::max(finest_ranks(layout).dense, ranks.dense);
        const std::int64_t routed = std::max(finest_ranks(layout).routed, ranks.routed);
        one = {p.chunks.padded(dense) / ranks.dense, p.routed_chunks.padded(routed) / ranks.routed};
        break;
      }
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

/// Elements of a rank's largest part of a parameter of the model, or of a unit's flat one: what
/// PyTorch's optimizer sees as a tensor, and DeepSpeed's norm under ZeRO-3.
std::int64_t largest_stepped(const StageParts& parts, const EngineProfile& engine,
                             const ShardRanks& ranks) {
  if (engine.padding == ShardPadding::flat) {
    const std::int64_t unit = std::max(parts.root.elements(), parts.largest_block.elements());
    return ceil_div(unit, ranks.dense);
  }
  std::int64_t largest = 0;
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const LayerParameters& p = parts.run[static_cast<std::size_t>(r)].layer->parameters;
    for (std::int32_t g = 0; g < p.groups; ++g) {
      const TensorGroup& t = p.group[static_cast<std::size_t>(g)];
      const std::int64_t ways = t.routed ? ranks.routed : ranks.dense;
      const std::int64_t each = engine.padding == ShardPadding::tensor
                                    ? ceil_div(t.rows * t.row_elements, ways)
                                    : ceil_div(t.rows, ways) * t.row_elements;
      largest = std::max(largest, each);
    }
  }
  return largest;
}

/// Temporaries of the optimizer step. torch.optim.AdamW makes the root of the second moment: of all
/// tensors at once, or of one and then its quotient by the bias correction.
/// Source: pytorch@v2.15.0:torch/optim/adam.py, _multi_tensor_adam and _single_tensor_adam.
Amount step_temporaries(const StageParts& parts, const MemoryRules& rules, const ShardRanks& ranks,
                        std::int64_t updated) {
  switch (rules.adamw) {
    case AdamwKernel::fused:
    case AdamwKernel::bnb_8bit:
    case AdamwKernel::paged:
    case AdamwKernel::paged_8bit:
      break;
    case AdamwKernel::foreach:
      return {updated, rules.parameter_bytes};
    case AdamwKernel::for_loop:
      return {largest_stepped(parts, *rules.engine, ranks),
              std::int64_t{2} * rules.parameter_bytes};
  }
  return {updated, rules.engine->optimizer_scratch_bytes};
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

Unit placed_elements(const StageParts& parts, const EngineProfile& engine, const Layout& layout,
                     Placement placement, std::int64_t multiple) {
  if (divides_joined_tensors(engine, layout)) {
    const ShardRanks by = shard_ranks(layout, Placement::shard_inner);
    const Unit part = {joined_part(parts.dense, by.dense), joined_part(parts.routed, by.routed)};
    if (placement != Placement::replicate) return part;
    return {part.dense * by.dense, part.routed * by.routed};
  }
  if (placement == Placement::replicate) {
    if (pads_whole_buckets(engine, layout)) return bucket_sums(parts, engine, layout).padded;
    const bool pads = multiple > 1 || pads_whole_units(engine, layout);
    if (!pads) return {parts.dense, parts.routed};
    return sharded_by_unit(parts, engine, {1, 1}, layout, multiple);
  }
  if (engine.padding == ShardPadding::bucket) return bucket_sums(parts, engine, layout).fullest;
  const ShardRanks ranks = parts.routed == 0 ? ShardRanks{shard_ranks(layout, placement).dense, 1}
                                             : shard_ranks(layout, placement);
  const bool divides = multiple == 1 && engine.padding != ShardPadding::unit &&
                       parts.rows_divisor > 0 && parts.rows_divisor % ranks.dense == 0 &&
                       parts.rows_divisor % ranks.routed == 0;
  if (divides) return {parts.dense / ranks.dense, parts.routed / ranks.routed};
  return sharded_by_unit(parts, engine, ranks, layout, multiple);
}

namespace {

/// Elements that a rank has less where embedding, last norm and head are one flat parameter, which
/// is rounded up once: FSDP1's root. Our kernels have a unit a layer (state_units()).
std::int64_t rounded_up_once(const StageParts& parts, const MemoryRules& rules,
                             const ShardRanks& ranks) {
  const EngineProfile& engine = *rules.engine;
  const bool flat = engine.padding == ShardPadding::flat && engine.keeps_root_gathered;
  if (!flat || rules.step_block) return 0;
  std::int64_t apart = ceil_div(parts.copied, ranks.dense);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    if (is_block(run.layer->role)) continue;
    apart += ceil_div(run.layer->parameters.dense, ranks.dense) * run.count;
  }
  return apart - ceil_div(parts.root.dense, ranks.dense);
}

}  // namespace

Unit held_elements(const StageParts& parts, const MemoryRules& rules, const Layout& layout,
                   Placement placement) {
  const auto placed = [&](Placement p) {
    return placed_elements(parts, *rules.engine, layout, p, rules.shard_multiple);
  };
  const StatePlacement all = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  if (all.optimizer == Placement::replicate) return placed(placement);
  // Our kernels have room for the padding of every piece.
  const bool whole_buckets = rules.step_block && pads_whole_buckets(*rules.engine, layout);
  if (!rules.whole_pieces && !whole_buckets) {
    Unit each = placed(placement);
    each.dense -= rounded_up_once(parts, rules, shard_ranks(layout, placement));
    return each;
  }
  Unit finest;
  if (whole_buckets) {
    const Unit padded = placed(Placement::replicate);
    const ShardRanks pieces = shard_ranks(layout, all.optimizer);
    finest = {padded.dense / pieces.dense, padded.routed / pieces.routed};
  } else {
    finest = placed(all.optimizer);
  }
  const ShardRanks ranks = shard_ranks(layout, all.optimizer);
  const ShardRanks of = shard_ranks(layout, placement);
  return {finest.dense * (ranks.dense / of.dense), finest.routed * (ranks.routed / of.routed)};
}

std::int64_t gradient_element_bytes(const MemoryRules& rules, const Layout& layout) {
  const std::int64_t narrow = rules.weight_bytes;
  return layout.fp32_gradients ? std::max(narrow, kMainGradientBytes) : narrow;
}

std::int64_t main_element_bytes(const MemoryRules& rules, const Layout& layout) {
  return rules.main_bytes - (layout.store_param_remainders ? rules.weight_bytes : 0);
}

bool moments_are_late(const MemoryRules& rules, const Layout& layout) {
  const EngineProfile& engine = *rules.engine;
  const bool early = engine.whole_moments_early && layout.zero_stage == 0 && rules.weight_bytes < 4;
  return engine.lazy_moments && !early;
}

namespace {

/// Of the gradients that ranks share by `placed` elements each, those that a rank keeps until the
/// step. DeepSpeed keeps whole tensors: under ZeRO-2 those that the last rank has a part of, which
/// backward makes first, and no padding under ZeRO-1.
std::int64_t gradients_kept(const StageParts& parts, const StageContext& context,
                            std::int64_t placed) {
  const EngineProfile& engine = *context.rules->engine;
  const Layout& layout = *context.layout;
  if (!engine.joins_whole_gradients || !divides_joined_tensors(engine, layout)) return placed;
  if (bucket_use(context) != BucketUse::as_made) return parts.dense + parts.routed;
  return rank_part(parts, shard_ranks(layout, Placement::shard_inner), true).whole;
}

/// Gradients cast for the optimizer, all at once or by sub-groups. DeepSpeed joins several of them
/// first, and casts each to fp64 for the norm: moments that the first step makes come later.
/// Source: deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage3.py:2686
/// (_prepare_fp32_grad_for_sub_group).
void add_casts(StageStates& s, const StageParts& parts, const StageContext& context,
               std::int64_t stepped, std::int64_t gradient_bytes) {
  const MemoryRules& rules = *context.rules;
  const EngineProfile& engine = *rules.engine;
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, placement.optimizer);
  if (engine.joins_whole_gradients && divides_joined_tensors(engine, layout)) {
    const OptimizerSteps steps = joined_steps(parts, ranks, rules, s.moments);
    s.first_step = steps.first;
    s.steady_step = steps.steady;
    return;
  }
  const bool by_sub_group = layout.zero_stage >= 3 && engine.sub_group_elements > 0;
  SubGroupSizes groups = {stepped, by_sub_group && parts.tensors > 1 ? stepped : 0};
  if (by_sub_group && stepped > engine.sub_group_elements) {
    groups = sub_group_sizes(parts, ranks, engine.sub_group_elements);
  }
  s.first_step.cast = {groups.largest, rules.main_bytes};
  s.steady_step.cast = s.first_step.cast;
  const Amount cast = {groups.joined, rules.main_bytes};
  const Amount joined = {groups.joined, gradient_bytes};
  if (cast.bytes() + joined.bytes() > s.steady_step.cast.bytes()) {
    s.steady_step.cast = cast;
    s.steady_step.joined = joined;
  }
  if (!by_sub_group) return;
  const Amount squares = {largest_stepped(parts, engine, ranks), kFp64Bytes};
  if (squares.bytes() > s.steady_step.bytes() - s.steady_step.gradients.bytes()) {
    s.steady_step.cast = s.steady_step.joined = {};
    s.steady_step.squares = squares;
  }
}

/// Elements of a rank's pieces that no tensor has, on the fullest rank: the optimizer steps on
/// tensors. Gaps are Megatron-FSDP's.
std::int64_t lacking_elements(const StageParts& parts, const EngineProfile& engine,
                              const Layout& layout) {
  if (!fills_root_buckets(engine, layout)) return 0;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, placement.optimizer);
  const ShardRanks finest = finest_ranks(layout);
  LackingElements dense(ranks.dense);
  LackingElements routed(ranks.routed);
  const std::vector<RootBucket> roots = root_buckets(parts, engine, layout);
  for (const RootBucket& bucket : roots) dense.add(bucket.chunks, bucket.padded, 1);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    routed.add(p.routed_chunks, p.routed_chunks.padded(finest.routed), run.count);
    if (is_outside(run.layer->role)) continue;
    dense.add(p.chunks, p.chunks.padded(finest.dense), run.count);
  }
  return dense.of_fullest() + routed.of_fullest();
}

}  // namespace

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
  const bool own_code = !rules.step_block;
  const std::int64_t stepped = optimizer - (own_code ? lacking_elements(parts, engine, layout) : 0);
  const std::int64_t gaps = own_code ? gaps_of_whole(parts, engine, layout) : 0;

  StageStates s;
  const bool in_parameters = engine.main_weights == MainWeights::parameter;
  const bool offloads = layout.offload_optimizer;
  const std::int64_t frozen_ways = shard_ranks(layout, placement.parameters).dense;
  s.frozen_weights = {ceil_div(parts.frozen, frozen_ways), rules.weight_bytes};
  s.router_buffers = {parts.counted_experts, kRouterBytes};
  add_narrow(s, parts, context, shard_ranks(layout, placement.parameters));
  if (in_parameters) {
    s.main_weights = {parameters, rules.parameter_bytes};
  } else {
    s.weights = {parameters - s.narrow_weights.count, rules.weight_bytes};
    if (!offloads) s.main_weights = {optimizer + gaps, main_element_bytes(rules, layout)};
  }

  std::int64_t gradient_bytes = rules.weight_bytes;
  if (engine.gradient_buffer == GradientBuffer::copy_in) {
    if (in_parameters) gradient_bytes = rules.parameter_bytes;
    const bool on_host = offloads && engine.offloads_gradients;
    Amount& kept = keeps_gradient_shards(engine, layout) ? s.gradients : s.late_gradients;
    if (!on_host) kept = {gradients_kept(parts, context, gradients), gradient_bytes};
  } else {
    gradient_bytes = gradient_element_bytes(rules, layout);
    s.gradients = {gradients + gaps, gradient_bytes};
  }
  if (keeps_gradient_shards(engine, layout)) s.reduce_buffer = reduce_buffer(rules, layout);
  if (engine.keeps_buckets) s.reduce_buffer = {gradients, gradient_bytes};
  s.received_gradients = received_after_backward(parts, context);
  if (engine.flattens_gradients) s.flat_gradients = {gradients, gradient_bytes};
  s.first_step.gradients = s.late_gradients;
  s.steady_step.gradients = s.late_gradients;
  if (offloads) {
    const std::int64_t main = std::max<std::int64_t>(rules.main_bytes, rules.weight_bytes);
    s.on_host = {stepped, 2 * main + rules.moment_bytes};
    return s;
  }
  if (is_bitsandbytes(rules.adamw)) {
    const BlockMoments kept =
        bitsandbytes_moments(parts, rules, shard_ranks(layout, placement.optimizer));
    s.moments = {kept.wide, rules.moment_bytes};
    s.narrow_moments = {kept.narrow, kNarrowMomentBytes};
    s.moment_scales = {kept.scales, kMomentScaleBytes};
    s.on_host = {kept.paged, 1};
    return s;
  }
  if (rules.narrow_moments) {
    const BlockMoments kept =
        torchao_moments(parts, rules, shard_ranks(layout, placement.optimizer));
    s.moments = {kept.wide, 2 * std::int64_t{rules.parameter_bytes}};
    s.narrow_moments = {kept.narrow, kNarrowMomentBytes};
    s.moment_scales = {kept.scales, kMomentScaleBytes};
    return s;
  }
  s.moments = {stepped, rules.moment_bytes};
  s.step_scratch =
      step_temporaries(parts, rules, shard_ranks(layout, placement.optimizer), stepped);
  if (engine.casts_gradients_for_optimizer && rules.main_bytes > gradient_bytes) {
    add_casts(s, parts, context, stepped, gradient_bytes);
  }
  return s;
}

}  // namespace shardwise
