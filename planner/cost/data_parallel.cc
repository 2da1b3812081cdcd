#include "planner/cost/data_parallel.h"

#include <algorithm>

#include "planner/cost/gathers_once.h"
#include "planner/spec/placement.h"

namespace shardwise {
namespace {

StatePlacement placement_in(const LeafContext& context) {
  return placement_of(context.layout->zero_stage, context.layout->outer_shards_optimizer);
}

/// Stream time beyond `compute` when `communication` runs beside it and slows it by `tax`.
Seconds beyond(Seconds compute, Seconds communication, double tax) {
  return std::max(communication * tax, communication - compute);
}

PassTaxes pass_taxes(const StageTime& stage, const TimeRules& rules) {
  PassTaxes taxes;
  const auto add = [&](const PassTime& pass, double PassTax::*of) {
    const Seconds all = pass.stream();
    if (all <= Seconds(0)) return;
    const double products = pass.gemm / all;
    const double rest = (pass.compute() - pass.gemm) / all;
    taxes[0].*of = rules.overlap_tax_intra.of(products, rest);
    taxes[1].*of = rules.overlap_tax_inter.of(products, rest);
  };
  PassTime backward = stage.backward;
  backward += stage.recompute;
  add(stage.forward, &PassTax::forward);
  add(backward, &PassTax::backward);
  return taxes;
}

/// Parameters are sharded: each unit is gathered before it computes and its gradients are reduced
/// after, beside the neighbours' compute.
class ByUnit {
 public:
  ByUnit(const StageTimes& stages, const LeafContext& context, const DataParallelMoves& moves,
         const ComputeBeside& beside)
      : rules_(*context.rules),
        engine_(*rules_.engine),
        layout_(*context.layout),
        stage_(stages.slowest),
        moves_(moves),
        kinds_(static_cast<std::size_t>(stage_.kinds)),
        stretch_(beside.stretch),
        tax_(beside.slowest[moves.across_nodes ? 1 : 0]) {
    // Engines that keep embedding and head whole gather them once a step.
    const bool buffered = layout_.double_buffer || engine_.gather == GatherBuffer::double_buffer;
    keeps_roots_ =
        buffered || (engine_.gather == GatherBuffer::element_queue && engine_.keeps_root_gathered);
    keeps_all_ = gathers_once(layout_, engine_);
  }

  DataParallelTime time() const {
    const bool each = layout_.reduce_every_microbatch;
    DataParallelTime result;
    result.forward = forward(false);
    result.backward = backward(each, false);
    const Seconds again = result.forward.total();
    const Seconds usual = result.backward.total();
    const Seconds last = backward(true, true).total();
    result.per_microbatch = again + usual;
    result.once =
        last - usual + (keeps_roots_ || keeps_all_ ? forward(true).total() - again : Seconds(0));
    (keeps_all_ ? result.once : result.per_microbatch) += moves_.copies_out;
    if (!keeps_all_) {
      const double share = layout_.reshard_after_forward == 0 ? 1 : 0.5;
      result.forward.others += moves_.copies_out * share;
      result.backward.others += moves_.copies_out * (1 - share);
    }
    if (each) result.backward.others += moves_.copies_in;
    (each ? result.per_microbatch : result.once) += moves_.copies_in;
    if (moves_.outer_gather > Seconds(0)) {
      const Seconds forward = on_slowest_gpu(stage_.forward, rules_) * stretch_;
      result.once += beyond(forward, moves_.outer_gather, tax_.forward);
    }
    return result;
  }

 private:
  using Waits = DataParallelTime::Waits;

  bool kept(std::size_t i) const { return keeps_all_ || (keeps_roots_ && stage_.units[i].root); }

  /// The first gather has nothing beside it; unit i computes while unit i+1 is gathered.
  Waits forward(bool first) const {
    const auto g = [&](std::size_t i) {
      return kept(i) && !first ? Seconds(0) : moves_.units[i].gather;
    };
    Waits waits;
    if (kinds_ > 0) waits.first = g(0);
    for (std::size_t i = 0; i < kinds_; ++i) {
      const UnitTime& unit = stage_.units[i];
      const Seconds compute = unit.forward * stretch_;
      Seconds& idle = i == 0 ? waits.first : waits.others;
      idle += beyond(compute, g(i), tax_.forward) * (unit.count - 1.0);
      if (i + 1 < kinds_) idle += beyond(compute, g(i + 1), tax_.forward);
    }
    return waits;
  }

  /// Unit i computes while unit i-1 is gathered and unit i+1 is reduced; the last unit is whole
  /// still, the first unit's reduction has nothing beside it but the next micro-batch, where a
  /// gather does not wait for it.
  Waits backward(bool reduces, bool last_pass) const {
    const auto r = [&](std::size_t i) { return reduces ? moves_.units[i].reduce : Seconds(0); };
    const auto g = [&](std::size_t i) {
      return kept(i) ? Seconds(0) : moves_.units[i].gather_again;
    };
    // The outer reduction has links and a stream of its own.
    const auto o = [&](std::size_t i) { return last_pass ? moves_.units[i].outer : Seconds(0); };
    Waits waits;
    for (std::size_t i = kinds_; i-- > 0;) {
      Seconds& idle = i == 0 ? waits.first : waits.others;
      const UnitTime& unit = stage_.units[i];
      const Seconds compute = unit.backward * stretch_;
      const bool last = i + 1 == kinds_;
      const bool first = i == 0;
      const Seconds before = first ? Seconds(0) : g(i - 1);
      const Seconds after = last ? Seconds(0) : r(i + 1);
      const Seconds after_outer = last ? Seconds(0) : o(i + 1);
      if (unit.count == 1) {
        idle += beyond(compute, std::max(before + after, after_outer), tax_.backward);
        continue;
      }
      idle += beyond(compute, std::max(g(i) + after, after_outer), tax_.backward);
      idle += beyond(compute, std::max(before + r(i), o(i)), tax_.backward);
      idle += beyond(compute, std::max(g(i) + r(i), o(i)), tax_.backward) * (unit.count - 2.0);
    }
    const bool ends = last_pass || engine_.all_gather_shares_communicator;
    if (kinds_ > 0 && ends) waits.first += r(0) + o(0);
    return waits;
  }

  const TimeRules& rules_;
  const EngineProfile& engine_;
  const Layout& layout_;
  const StageTime& stage_;
  const DataParallelMoves& moves_;
  std::size_t kinds_;
  double stretch_;
  PassTax tax_;
  bool keeps_roots_ = false;
  bool keeps_all_ = false;
};

/// Communication of a `whole` in pieces of which one has nothing beside it, the others `window`
/// seconds of compute that make (or use) them one after the other.
Seconds in_buckets(Seconds whole, Seconds piece, Seconds window, double tax, bool overlaps) {
  if (!overlaps) return whole;
  return piece + beyond(window, whole - piece, tax);
}

/// Whole parameters on every rank: gradients are reduced in buckets beside the backward pass,
/// parameters gathered in buckets beside the next forward pass.
DataParallelTime by_bucket(const LeafContext& context, const DataParallelMoves& moves,
                           const ComputeBeside& beside) {
  const Layout& layout = *context.layout;
  const PassTax& tax = beside.first[moves.across_nodes ? 1 : 0];
  const StatePlacement placement = placement_in(context);
  const bool every = placement.gradients != Placement::replicate && layout.reduce_every_microbatch;

  DataParallelTime result;
  const Seconds exposed = in_buckets(
      moves.reduce_chain, moves.reduce_last, beside.backward_window * moves.beside_compute,
      tax.backward, layout.overlap_grad_reduce && !context.rules->engine->flattens_gradients);
  if (every && layout.overlap_grad_reduce) {
    // All but the last micro-batch's have the next forward pass beside them too.
    const Seconds window = beside.backward_window + beside.forward_window;
    result.per_microbatch += beyond(window, moves.reduce_chain, tax.backward);
    result.once += std::max(Seconds(0), exposed - result.per_microbatch);
  } else {
    (every ? result.per_microbatch : result.once) += exposed;
  }
  result.once += moves.sums;
  if (placement.optimizer != Placement::replicate) {
    result.once += in_buckets(
        moves.gather, moves.gather_first, beside.forward_window * moves.beside_compute, tax.forward,
        layout.overlap_param_gather && context.rules->engine->overlaps_updated_gather);
  }
  return result;
}

}  // namespace

ComputeBeside compute_beside(const StageTimes& stages, const LeafContext& context, double stretch) {
  const StageTime& first = stages.first;
  ComputeBeside beside;
  beside.stretch = stretch;
  beside.slowest = pass_taxes(stages.slowest, *context.rules);
  beside.first = pass_taxes(first, *context.rules);
  const TimeRules& rules = *context.rules;
  beside.forward_window = on_slowest_gpu(first.forward, rules) * stretch;
  beside.backward_window =
      (on_slowest_gpu(first.backward, rules) + on_slowest_gpu(first.recompute, rules)) * stretch;
  return beside;
}

DataParallelTime data_parallel_time(const StageTimes& stages, const LeafContext& context,
                                    const DataParallelMoves& moves, const ComputeBeside& beside) {
  if (placement_in(context).parameters == Placement::replicate) {
    return by_bucket(context, moves, beside);
  }
  return ByUnit(stages, context, moves, beside).time();
}

DataParallelTraffic data_parallel_traffic(const StageTimes& stages, const LeafContext& context,
                                          const DataParallelMoves& moves,
                                          const ComputeBeside& beside) {
  const Layout& layout = *context.layout;
  const TimeRules& rules = *context.rules;
  const StatePlacement placement = placement_in(context);
  const bool whole = placement.parameters == Placement::replicate;
  const auto m = static_cast<double>(context.num_microbatches);
  const bool each =
      layout.reduce_every_microbatch && (!whole || placement.gradients != Placement::replicate);
  const double reductions = each ? m : 1;
  const double gradient = gradient_bytes(rules, layout);

  DataParallelTraffic all;
  if (whole) {
    const auto dense = static_cast<double>(stages.first.elements.dense);
    const auto routed = static_cast<double>(stages.first.elements.routed);
    all.reduce = moves.reduce * reductions;
    all.reduced_bytes = gradient * (dense + routed) * reductions;
    all.outer_reduced_bytes = gradient * outer_elements(layout, dense, routed) * reductions;
    if (placement.optimizer != Placement::replicate) {
      all.gather = moves.gather;
      all.gathered_bytes = rules.weight_bytes * (dense + routed);
    }
    if (placement.optimizer == Placement::shard_both) {
      all.outer_gathered_bytes = rules.weight_bytes * outer_elements(layout, dense, routed);
    }
  } else {
    const double gathers = gathers_once(layout, *rules.engine) ? 1 : m;
    const double passes = layout.reshard_after_forward == 0 ? 1 : 2;
    Seconds gathered;
    Seconds reduced;
    for (std::size_t i = 0; i < static_cast<std::size_t>(stages.slowest.kinds); ++i) {
      const UnitTime& unit = stages.slowest.units[i];
      const auto dense = static_cast<double>(unit.elements.dense);
      const auto routed = static_cast<double>(unit.elements.routed);
      const double n = unit.count;
      gathered += (moves.units[i].gather + moves.units[i].gather_again) * n;
      reduced += moves.units[i].reduce * n;
      all.reduce += moves.units[i].outer * n;
      all.gathered_bytes += rules.weight_bytes * (dense + routed) * n;
      all.reduced_bytes += gradient * (dense + routed) * n;
      all.outer_reduced_bytes += gradient * outer_elements(layout, dense, routed) * n;
    }
    all.gather = gathered * gathers + moves.outer_gather;
    all.reduce += reduced * reductions;
    all.gathered_bytes *= gathers * passes;
    all.reduced_bytes *= reductions;
    all.copies = moves.copies_out * gathers + moves.copies_in * reductions;
    if (placement.optimizer == Placement::shard_both) {
      all.outer_gathered_bytes = all.outer_reduced_bytes * (rules.weight_bytes / gradient);
    }
  }
  const PassTax& tax = (whole ? beside.first : beside.slowest)[moves.across_nodes ? 1 : 0];
  const DataParallelTime time = data_parallel_time(stages, context, moves, beside);
  all.tax = std::min(time.per_microbatch * m + time.once,
                     all.gather * tax.forward + all.reduce * tax.backward);
  return all;
}

}  // namespace shardwise
