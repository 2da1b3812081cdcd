#include "planner/cost/data_parallel.h"

#include <algorithm>

#include "planner/cost/state_bytes.h"

namespace shardwise {
namespace {

/// Prices of moving one unit.
class UnitPrices {
 public:
  explicit UnitPrices(const LeafContext& context)
      : rules_(*context.rules),
        layout_(*context.layout),
        groups_(*context.groups),
        placement_(placement_of(layout_.zero_stage, layout_.outer_shards_optimizer)),
        shards_(shard_ranks(layout_, Placement::shard_inner)),
        gradient_(gradient_bytes(rules_, layout_)),
        weight_(rules_.weight_bytes) {}

  const StatePlacement& placement() const { return placement_; }

  /// Sharded to whole, over the inner axis.
  Seconds gather(double dense, double routed) const {
    return groups_.dense.all_gather(weight_ * dense) + groups_.routed.all_gather(weight_ * routed);
  }
  /// Partial to sharded over the inner axis, or to whole where nothing is sharded. Sums in fp32 are
  /// part of it where they run beside compute, as communication does.
  Seconds reduce(double dense, double routed) const {
    if (placement_.optimizer == Placement::replicate) {
      return groups_.dense.all_reduce(gradient_ * dense) +
             groups_.routed.all_reduce(gradient_ * routed);
    }
    if (rules_.fp32_accumulation) {
      return groups_.dense.all_to_all(gradient_ * dense) +
             groups_.routed.all_to_all(gradient_ * routed) +
             (sums_in_compute() ? Seconds(0) : sums(dense, routed));
    }
    return groups_.dense.reduce_scatter(gradient_ * dense) +
           groups_.routed.reduce_scatter(gradient_ * routed);
  }
  /// The outer axis, on what the inner reduction leaves.
  Seconds reduce_outer(double dense, double routed) const {
    const double d = gradient_ * dense / inner_parts(shards_.dense);
    const double e = gradient_ * routed / inner_parts(shards_.routed);
    if (placement_.optimizer == Placement::shard_both) {
      return groups_.dense_outer.reduce_scatter(d) + groups_.routed_outer.reduce_scatter(e);
    }
    return groups_.dense_outer.all_reduce(d) + groups_.routed_outer.all_reduce(e);
  }
  /// Weights that the optimizer updated in shards of the outer axis too.
  Seconds gather_outer(double dense, double routed) const {
    const double d = weight_ * dense / static_cast<double>(shards_.dense);
    const double e = weight_ * routed / static_cast<double>(shards_.routed);
    return groups_.dense_outer.all_gather(d) + groups_.routed_outer.all_gather(e);
  }
  /// Of what all-to-alls brought, in fp32; nothing without them.
  Seconds sums(double dense, double routed) const {
    if (!rules_.fp32_accumulation) return Seconds(0);
    return sum(dense, shards_.dense) + sum(routed, shards_.routed);
  }
  /// Megatron sums on the stream that waits.
  bool sums_in_compute() const {
    return rules_.engine->gradient_buffer == GradientBuffer::contiguous;
  }
  double gradient() const { return gradient_; }
  double weight() const { return weight_; }
  /// Elements that the outer axis reduces, or gathers, of a unit. None without that axis.
  double outer_elements(double dense, double routed) const {
    if (layout_.dp_replicate == 1) return 0;
    return dense / inner_parts(shards_.dense) + routed / inner_parts(shards_.routed);
  }

 private:
  Seconds sum(double elements, std::int64_t ranks) const {
    if (elements <= 0 || ranks <= 1) return Seconds(0);
    const double bytes = fp32_sum_bytes(gradient_, elements, static_cast<double>(ranks));
    return memory_bound_time(rules_.cluster->gpu, Bytes(static_cast<std::int64_t>(bytes)));
  }
  double inner_parts(std::int64_t shards) const {
    return placement_.optimizer == Placement::replicate ? 1.0 : static_cast<double>(shards);
  }

  const TimeRules& rules_;
  const Layout& layout_;
  const DataParallelTables& groups_;
  StatePlacement placement_;
  ShardRanks shards_;
  double gradient_;
  double weight_;
};

/// Stream time beyond `compute` when `communication` runs beside it and slows it by `tax`.
Seconds beyond(Seconds compute, Seconds communication, double tax) {
  return std::max(communication * tax, communication - compute);
}

/// What a pass loses to a collective beside it, by how much of it is matrix products.
struct PassTax {
  double forward = 0;
  double backward = 0;
};
PassTax pass_tax(const StageTime& stage, const LeafContext& context) {
  const TimeRules& r = *context.rules;
  const Layout& l = *context.layout;
  const std::int64_t group = std::int64_t{l.tp} * l.cp * l.dp_shard;
  const OverlapTax& tax =
      group > r.cluster->gpus_per_node ? r.overlap_tax_inter : r.overlap_tax_intra;
  const auto of = [&](const PassTime& pass) {
    const Seconds all = pass.stream();
    if (all <= Seconds(0)) return 0.0;
    return tax.of(pass.gemm / all, (pass.compute() - pass.gemm) / all);
  };
  PassTime backward = stage.backward;
  backward += stage.recompute;
  return {of(stage.forward), of(backward)};
}

/// Parameters are sharded: each unit is gathered before it computes and its gradients are reduced
/// after, beside the neighbours' compute.
DataParallelTime by_unit(const StageTimes& stages, const LeafContext& context, double stretch) {
  const UnitPrices prices(context);
  const Layout& layout = *context.layout;
  const StageTime& stage = stages.slowest;
  const auto m = static_cast<double>(context.num_microbatches);
  const PassTax tax = pass_tax(stage, context);
  const auto kinds = static_cast<std::size_t>(stage.kinds);

  std::array<Seconds, kMaxUnitKinds> gather{};
  std::array<Seconds, kMaxUnitKinds> reduce{};
  std::array<Seconds, kMaxUnitKinds> outer{};
  DataParallelTime result;
  Seconds gathered;
  Seconds reduced;
  for (std::size_t i = 0; i < kinds; ++i) {
    const UnitTime& unit = stage.units[i];
    const auto dense = static_cast<double>(unit.elements.dense);
    const auto routed = static_cast<double>(unit.elements.routed);
    gather[i] = prices.gather(dense, routed);
    reduce[i] = prices.reduce(dense, routed);
    outer[i] = prices.reduce_outer(dense, routed);
    const double n = unit.count;
    gathered += gather[i] * n;
    reduced += reduce[i] * n;
    result.gathered_bytes += prices.weight() * (dense + routed) * n;
    result.reduced_bytes += prices.gradient() * (dense + routed) * n;
    result.reduce += outer[i] * n;
    result.outer_reduced_bytes += prices.gradient() * prices.outer_elements(dense, routed) * n;
  }

  // Engines that keep embedding and head whole gather them once a step.
  const EngineProfile& engine = *context.rules->engine;
  const bool buffered = layout.double_buffer || engine.gather == GatherBuffer::double_buffer;
  const bool keeps_roots =
      buffered || (engine.gather == GatherBuffer::element_queue && engine.keeps_root_gathered);
  const auto kept = [&](std::size_t i) { return keeps_roots && stage.units[i].root; };
  // Forward: the first gather has nothing beside it; unit i computes while unit i+1 is gathered.
  const auto forward = [&](bool first) {
    const auto g = [&](std::size_t i) { return kept(i) && !first ? Seconds(0) : gather[i]; };
    Seconds idle = kinds > 0 ? g(0) : Seconds(0);
    for (std::size_t i = 0; i < kinds; ++i) {
      const UnitTime& unit = stage.units[i];
      idle += beyond(unit.forward * stretch, g(i), tax.forward) * (unit.count - 1.0);
      if (i + 1 < kinds) idle += beyond(unit.forward * stretch, g(i + 1), tax.forward);
    }
    return idle;
  };
  // Backward: unit i computes while unit i-1 is gathered and unit i+1 is reduced; the last unit is
  // whole still, the first unit's reduction has nothing beside it but the next micro-batch, where a
  // gather does not wait for it.
  const auto backward = [&](bool reduces, bool last_pass) {
    const auto r = [&](std::size_t i) { return reduces ? reduce[i] : Seconds(0); };
    const auto g = [&](std::size_t i) {
      return layout.reshard_after_forward && !kept(i) ? gather[i] : Seconds(0);
    };
    // The outer reduction has links and a stream of its own.
    const auto o = [&](std::size_t i) { return last_pass ? outer[i] : Seconds(0); };
    Seconds idle;
    for (std::size_t i = kinds; i-- > 0;) {
      const UnitTime& unit = stage.units[i];
      const bool last = i + 1 == kinds;
      const bool first = i == 0;
      const Seconds before = first ? Seconds(0) : g(i - 1);
      const Seconds after = last ? Seconds(0) : r(i + 1);
      const Seconds after_outer = last ? Seconds(0) : o(i + 1);
      if (unit.count == 1) {
        idle +=
            beyond(unit.backward * stretch, std::max(before + after, after_outer), tax.backward);
        continue;
      }
      idle += beyond(unit.backward * stretch, std::max(g(i) + after, after_outer), tax.backward);
      idle += beyond(unit.backward * stretch, std::max(before + r(i), o(i)), tax.backward);
      idle += beyond(unit.backward * stretch, std::max(g(i) + r(i), o(i)), tax.backward) *
              (unit.count - 2.0);
    }
    if (kinds == 0) return idle;
    return last_pass || engine.all_gather_shares_communicator ? idle + r(0) + o(0) : idle;
  };

  const double passes = layout.reshard_after_forward ? 2 : 1;
  const bool each = layout.reduce_every_microbatch;
  const Seconds usual = backward(each, false);
  const Seconds last = backward(true, true);
  const Seconds again = forward(false);
  result.per_microbatch = again + usual;
  result.once = last - usual + (forward(true) - again);
  result.gather = gathered * (m * passes);
  result.reduce += reduced * (each ? m : 1);
  result.gathered_bytes *= m * passes;
  result.reduced_bytes *= each ? m : 1;
  // Copies into and out of the communication buffers are the compute stream's work.
  const auto elements = static_cast<double>(stage.elements.dense + stage.elements.routed);
  const auto copy = [&](double bytes) {
    if (bytes <= 0 || layout.dp_shard * layout.cp == 1) return Seconds(0);
    return memory_bound_time(context.rules->cluster->gpu,
                             Bytes(static_cast<std::int64_t>(bytes * elements)));
  };
  const Seconds copies_out = copy(context.rules->gather_copy_bytes * passes);
  const Seconds copies_in = copy(context.rules->reduce_copy_bytes);
  result.per_microbatch += copies_out + (each ? copies_in : Seconds(0));
  result.once += each ? Seconds(0) : copies_in;
  result.copies = copies_out * m + copies_in * (each ? m : 1);
  if (prices.placement().optimizer == Placement::shard_both) {
    const Seconds outer_gather = prices.gather_outer(static_cast<double>(stage.elements.dense),
                                                     static_cast<double>(stage.elements.routed));
    result.gather += outer_gather;
    result.outer_gathered_bytes =
        result.outer_reduced_bytes * (prices.weight() / prices.gradient());
    result.once += beyond(stage.forward.stream() * stretch, outer_gather, tax.forward);
  }
  result.tax = std::min(result.per_microbatch * m + result.once,
                        result.gather * tax.forward + result.reduce * tax.backward);
  return result;
}

/// Communication in `buckets` equal pieces beside `window` seconds of compute that make (or use)
/// them one after the other: the last (or first) piece has nothing beside it.
Seconds in_buckets(Seconds whole, Seconds piece, double buckets, Seconds window, double tax,
                   bool overlaps) {
  if (!overlaps) return whole;
  const Seconds beside = window * std::max(0.0, 1 - 1 / buckets);
  return piece + beyond(beside, whole - piece, tax);
}

/// Whole parameters on every rank: gradients are reduced in buckets beside the backward pass,
/// parameters gathered in buckets beside the next forward pass.
DataParallelTime by_bucket(const StageTimes& stages, const LeafContext& context, double stretch) {
  const UnitPrices prices(context);
  const Layout& layout = *context.layout;
  const EngineProfile& engine = *context.rules->engine;
  const auto m = static_cast<double>(context.num_microbatches);
  const StageTime& stage = stages.first;
  const PassTax tax = pass_tax(stage, context);
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
  // Buckets of a chunk have the passes of the chunks after it beside them: those of pp
  // micro-batches of each, breadth first of all.
  const double others = layout.pp > 1 ? layout.vpp - 1 : 0;
  const double together = layout.schedule == PipelineSchedule::looped_bfs
                              ? m
                              : std::min(static_cast<double>(layout.pp), m);
  const double passes = (1 + together * others) / (others + 1);
  const Seconds window_backward = stage.backward_stream() * (stretch * passes);
  const Seconds window_forward = stage.forward.stream() * (stretch * passes);
  const bool shards_gradients = prices.placement().gradients != Placement::replicate;
  const bool every = shards_gradients && layout.reduce_every_microbatch;

  DataParallelTime result;
  // The outer axis follows each inner reduction on a stream of its own.
  const Seconds last_inner = std::min(inner, prices.reduce(last_dense, last_routed));
  const Seconds last_outer = std::min(outer, prices.reduce_outer(last_dense, last_routed));
  const Seconds last = last_inner + last_outer;
  const Seconds whole = last + std::max(inner - last_inner, outer - last_outer);
  const Seconds exposed = in_buckets(whole, last, buckets, window_backward, tax.backward,
                                     layout.overlap_grad_reduce && !engine.flattens_gradients);
  result.reduce = (inner + outer) * (every ? m : 1);
  result.reduced_bytes = prices.gradient() * (dense + routed) * (every ? m : 1);
  result.outer_reduced_bytes =
      prices.gradient() * prices.outer_elements(dense, routed) * (every ? m : 1);
  if (every && layout.overlap_grad_reduce) {
    // All but the last micro-batch's have the next forward pass beside them too.
    const Seconds beside = window_backward + stage.forward.stream() * stretch;
    result.per_microbatch += beyond(beside, whole, tax.backward);
    result.once += std::max(Seconds(0), exposed - result.per_microbatch);
  } else {
    (every ? result.per_microbatch : result.once) += exposed;
  }
  if (prices.sums_in_compute()) {
    result.once += prices.sums(dense / buckets, routed / buckets) * buckets;
  }

  // Later stages reduce in one piece after their last backward, which ends earlier.
  if (layout.pp > 1 && !every) {
    const auto d = static_cast<double>(stages.most_later.dense);
    const auto e = static_cast<double>(stages.most_later.routed);
    const Seconds later = prices.reduce(d, e) + prices.reduce_outer(d, e);
    result.once = std::max(result.once, later - stage.backward_stream() * stretch / layout.vpp);
  }

  if (prices.placement().optimizer != Placement::replicate) {
    Seconds gather = prices.gather(dense / buckets, routed / buckets) * buckets;
    if (prices.placement().optimizer == Placement::shard_both) {
      gather += prices.gather_outer(dense / buckets, routed / buckets) * buckets;
      result.outer_gathered_bytes = prices.weight() * prices.outer_elements(dense, routed);
    }
    result.gather = gather;
    result.gathered_bytes = prices.weight() * (dense + routed);
    const Seconds gather_first = std::min(gather, prices.gather(last_dense, last_routed));
    result.once += in_buckets(gather, gather_first, buckets, window_forward, tax.forward,
                              layout.overlap_param_gather);
  }
  result.tax = std::min(result.per_microbatch * m + result.once,
                        result.gather * tax.forward + result.reduce * tax.backward);
  return result;
}

}  // namespace

double gradient_bytes(const TimeRules& rules, const Layout& layout) {
  if (rules.reduce_bytes > 0) return rules.reduce_bytes;
  return layout.fp32_gradients ? 4.0 : std::max(rules.weight_bytes, 2.0);
}

double fp32_sum_bytes(double gradient_bytes, double elements, double ranks) {
  constexpr double kFp32 = 4;
  return gradient_bytes * elements + (2 * kFp32 + gradient_bytes) * elements / ranks;
}

DataParallelTime data_parallel_time(const StageTimes& stages, const LeafContext& context,
                                    double stretch) {
  const Placement parameters =
      placement_of(context.layout->zero_stage, context.layout->outer_shards_optimizer).parameters;
  return parameters == Placement::replicate ? by_bucket(stages, context, stretch)
                                            : by_unit(stages, context, stretch);
}

}  // namespace shardwise
