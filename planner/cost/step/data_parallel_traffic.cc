#include "planner/cost/step/data_parallel_traffic.h"

#include "planner/schedule/gathers_once.h"
#include "planner/spec/plan/gradient_reductions.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

DataParallelTraffic data_parallel_traffic(const StageTimes& stages, const LeafContext& context,
                                          const DataParallelMoves& moves) {
  const Layout& layout = *context.layout;
  const TimeRules& rules = *context.rules;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const bool whole = placement.parameters == Placement::replicate;
  const auto m = static_cast<double>(context.num_microbatches);
  const Reductions times = reductions_of(layout, context.num_microbatches);
  const auto reductions = static_cast<double>(times.inner);
  const auto outer_reductions = static_cast<double>(times.outer);
  const double gradient = gradient_bytes(rules, layout);

  DataParallelTraffic all;
  if (whole) {
    const auto dense = static_cast<double>(stages.first.elements.dense);
    const auto routed = static_cast<double>(stages.first.elements.routed);
    all.reduce = moves.reduce * reductions + moves.reduce_outer * outer_reductions;
    all.reduced_bytes = gradient * (dense + routed) * reductions;
    if (placement.optimizer != Placement::replicate) {
      all.gather = moves.gather;
      all.gathered_bytes = rules.weight_bytes * (dense + routed);
    }
  } else {
    const double gathers = gathers_once(layout, *rules.engine) ? 1 : m;
    const double passes = layout.reshard_after_forward == 0 ? 1 : 2;
    Seconds gathered;
    Seconds in_groups;  // of a forward pass after the first, less what it takes among all ranks
    Seconds reduced;
    for (std::size_t i = 0; i < static_cast<std::size_t>(stages.slowest.kinds); ++i) {
      const UnitTime& unit = stages.slowest.units[i];
      const auto dense = static_cast<double>(unit.elements.dense);
      const auto routed = static_cast<double>(unit.elements.routed);
      const double n = unit.count;
      gathered += (moves.units[i].gather + moves.units[i].gather_again) * n;
      in_groups += (moves.units[i].gather_again - moves.units[i].gather) * n;
      reduced += moves.units[i].reduce * n;
      all.reduce += moves.units[i].outer * (n * outer_reductions);
      all.gathered_bytes += rules.weight_bytes * (dense + routed) * n;
      all.reduced_bytes += gradient * (dense + routed) * n;
    }
    all.gather = gathered * gathers + moves.outer_gather;
    if (keeps_parts(layout, *rules.engine)) all.gather += in_groups * (gathers - 1);
    all.reduce += reduced * reductions;
    all.gathered_bytes *= gathers * passes;
    all.reduced_bytes *= reductions;
    all.copies = moves.copies_out * gathers + moves.copies_in * reductions + moves.copies_once;
  }
  return all;
}

}  // namespace shardwise
