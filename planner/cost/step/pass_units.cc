#include "planner/cost/step/pass_units.h"

#include "planner/cost/kernels/compute.h"
#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/cost/step/unit_prices.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {
namespace {

constexpr double kMainWeightBytes = 4;  // of a parameter that is its own main weight

double move_seconds(const LeafContext& context, double bytes, MoveKind kind = MoveKind::copy) {
  if (bytes <= 0) return 0;
  return memory_bound_time(context.rules->cluster->gpu, Bytes(static_cast<std::int64_t>(bytes)),
                           kind)
      .value();
}

}  // namespace

bool reduces_by_unit(const LeafContext& context) {
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  return placement.parameters != Placement::replicate ||
         joins_root(*context.rules->engine, layout, context.rules->own_kernels) ||
         (context.rules->engine->gradient_buffer == GradientBuffer::unit_queue &&
          placement.gradients != Placement::replicate);
}

bool sums_in_compute(const LeafContext& context) {
  return UnitPrices(context).sums_in_compute() && context.groups->any && !reduces_by_unit(context);
}

bool streams_beside_passes(const LeafContext& context) {
  const Layout& layout = *context.layout;
  const bool every =
      reduces_each_of(layout, context.num_microbatches) && layout.overlap_grad_reduce;
  return layout.offload_activations ||
         (context.groups->any && (reduces_by_unit(context) || every)) || sums_in_compute(context);
}

StreamRules stream_rules(const LeafContext& context) {
  using Gather = StreamRules::Gather;
  StreamRules rules;
  const Layout& layout = *context.layout;
  const EngineProfile& engine = *context.rules->engine;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  rules.sharded = placement.parameters != Placement::replicate;
  rules.every = reduces_each_of(layout, context.num_microbatches);
  rules.shared = rules.sharded && engine.all_gather_shares_communicator;
  rules.copies = engine.gradient_buffer == GradientBuffer::copy_in;
  rules.waits_to_copy = engine.gather != GatherBuffer::rate_limited;
  rules.reshards = layout.reshard_after_forward != 0;
  rules.once = gathers_once(layout, engine);
  rules.to_groups = layout.reshards_to_groups();
  rules.keeps_parts = keeps_parts(layout, engine);
  rules.offloads = layout.offload_activations;
  rules.planned = plans_buffers(engine);
  rules.buckets_beside = layout.overlap_grad_reduce && !engine.flattens_gradients;
  rules.accumulates = rules.every && context.num_microbatches > 1;
  if (layout.double_buffer || engine.gather == GatherBuffer::double_buffer) {
    rules.gather = Gather::double_buffered;
  } else if (engine.gather == GatherBuffer::rate_limited) {
    rules.gather = Gather::limited;
  } else if (engine.gather == GatherBuffer::copy_out) {
    rules.gather = Gather::copied;
  } else {
    rules.gather = Gather::queued;
  }
  rules.keeps_roots = engine.keeps_root_gathered;
  rules.joins_roots = joins_root(engine, layout, context.rules->own_kernels);
  return rules;
}

LayerPace taken(LayerPace layer) {
  const double interval = layer.memory->recompute_interval;
  layer.time.backward += layer.recompute * (interval - 1);
  layer.recompute = layer.recompute * interval;
  layer.launches.recompute *= interval;
  return layer;
}

LayerPace left_alone(LayerPace layer) {
  layer.time.backward -= layer.recompute;
  layer.recompute = Seconds(0);
  layer.launches.recompute = 0;
  layer.saved = layer.memory->saved_whole;
  return layer;
}

PassUnit pass_unit(const StreamRules& rules, const LeafContext& context, const LayerPace& layer,
                   const HostRules& host) {
  const UnitPrices prices(context);
  const TimeRules& time = *context.rules;
  const Layout& layout = *context.layout;
  const UnitElements of =
      unit_elements(*layer.memory, layer.copied, *time.engine, layout, time.shard_multiple);
  const OwnRoots roots = own_roots(*layer.memory, layer.place, *time.engine, layout);
  const auto each_root = [&](auto price) {
    double sum = 0;
    for (const RootBucket& root : roots.buckets) sum += price(static_cast<double>(root.padded));
    return sum;
  };
  const bool padded = prices.placement().optimizer != Placement::replicate;
  const auto dense = static_cast<double>(padded ? of.padded_dense : of.dense);
  const auto routed = static_cast<double>(padded ? of.padded_routed : of.routed);
  const auto frozen = static_cast<double>(of.padded_frozen);
  const ShardRanks shards = shard_ranks(layout, Placement::shard_inner);
  const double trained =
      (dense + static_cast<double>(roots.padded())) / static_cast<double>(shards.dense) +
      routed / static_cast<double>(shards.routed);
  const double shard = trained + frozen / static_cast<double>(shards.dense);
  PassUnit unit;
  unit.elements = static_cast<double>(of.room() + roots.padded());
  unit.trained = static_cast<double>(of.trained_room() + roots.padded());
  unit.begins_root = roots.begins_others;
  unit.root = layer.root;
  unit.head = layer.head;
  unit.tied_to_head = layer.tied_to_head;
  if (rules.offloads) unit.host = (Bytes(layer.saved) / time.cluster->host_link).value();
  if (rules.sharded) {
    unit.gather = {prices.gather(dense + frozen, 0).value(), prices.gather(0, routed).value()};
    unit.gather[0] += each_root([&](double root) { return prices.gather(root, 0).value(); });
    const bool inner = unit.gather[0] + unit.gather[1] > 0;
    if (prices.placement().optimizer == Placement::shard_both) {
      unit.gather_outer = prices.gather_outer(dense, routed).value();
      unit.gather_outer +=
          each_root([&](double root) { return prices.gather_outer(root, 0).value(); });
    }
    unit.gathers = inner || unit.gather_outer > 0;
    unit.gather_again = rules.to_groups ? prices.gather_again(dense, 0).value() + unit.gather[1]
                                        : prices.gather_again(dense + frozen, routed).value();
    if (rules.to_groups) {
      // Read and written.
      unit.reshard =
          move_seconds(context, 2 * time.weight_bytes * dense / layout.reshard_after_forward);
    }
    // Frozen weights are kept as they are computed with (MemoryRules::casts_weights).
    const bool casts = time.engine->main_weights == MainWeights::parameter &&
                       time.weight_bytes < kMainWeightBytes && of.frozen <= of.dense + of.routed;
    // Copies are around collectives of the inner axis.
    if (inner) {
      unit.copy_out = move_seconds(context, time.gather_copy_bytes * unit.elements);
      if (casts) {
        unit.cast =
            move_seconds(context, shard * (kMainWeightBytes + time.weight_bytes), MoveKind::cast);
      }
    }
  }
  if (reduces_by_unit(context)) {
    unit.reduce = {prices.reduce(dense, 0).value(), prices.reduce(0, routed).value()};
    unit.reduce[0] += each_root([&](double root) { return prices.reduce(root, 0).value(); });
    unit.reduces = unit.reduce[0] + unit.reduce[1] > 0;
    unit.reduce_outer = prices.reduce_outer(dense, routed).value();
    unit.reduce_outer +=
        each_root([&](double root) { return prices.reduce_outer(root, 0).value(); });
    if (unit.reduces) {
      if (rules.copies) unit.copy_in = move_seconds(context, time.reduce_copy_bytes * unit.trained);
      unit.accumulate = move_seconds(context, 3 * gradient_bytes(time, layout) * trained);
    }
  }
  if (layout.dp_replicate > 1) {
    unit.outers = (dense > 0 ? 1 : 0) + (routed > 0 ? 1 : 0);
    unit.outers += static_cast<double>(roots.buckets.size());
  }
  unit.compute = layer.time;
  unit.issued = issued_layer(layer, host);
  unit.kept_over_step = rules.kept_over_step(unit);
  unit.kept_to_backward = rules.kept_to_backward(unit);
  return unit;
}

bool StreamRules::kept_over_step(const PassUnit& unit) const {
  if (gather == Gather::double_buffered) return unit.root;
  if (once) return true;
  return gather == Gather::queued && keeps_roots && unit.root;
}

bool StreamRules::kept_to_backward(const PassUnit& unit) const {
  if (!reshards || kept_over_step(unit)) return true;
  if (gather == Gather::limited) return keeps_roots && unit.root;
  return gather == Gather::copied && (unit.head || unit.tied_to_head);
}

}  // namespace shardwise
