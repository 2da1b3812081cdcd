#include "simulator/workload/layer_transfers.h"

#include <algorithm>
#include <utility>

#include "planner/cost/software/time_rules.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/lowering/price.h"
#include "planner/lowering/stage/layer_items.h"

namespace shardwise::sim {
namespace {

InsideTransfer& entry_of(std::vector<InsideTransfer>& axes, Stream axis) {
  const auto same = std::ranges::find(axes, axis, &InsideTransfer::axis);
  if (same != axes.end()) return *same;
  axes.push_back({axis, 0, {}});
  return axes.back();
}

}  // namespace

LayerTransfers::LayerTransfers(const Plan& plan) : LayerTransfers(plan, layer_passes(plan)) {}

LayerTransfers::LayerTransfers(const Plan& plan, std::vector<LayerTime> passes)
    : plan_(plan), layers_(std::move(passes)), items_(layer_items(plan)) {
  const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
  for (const LayerTime& layer :
       layer_times(plan.model, plan.job, plan.engine, plan.cluster, plan.layout)) {
    left_.push_back(exchange_left(layer, rules, plan.layout));
  }
}

InsideTransfers LayerTransfers::of(const LayerWork& work) const {
  const auto kind = static_cast<std::size_t>(work.kind);
  const auto alone = [&](OpCost cost) {
    return price(cost, plan_.cluster, plan_.layout, layers_).value();
  };
  OpCost whole;
  whole.layers.push_back(work);
  const bool recompute = work.part == LayerPart::recompute;
  const bool forwards = recompute || work.part == LayerPart::forward;
  const double left = left_[kind];

  InsideTransfers found;
  double stopping = 0;    // compute stands still meanwhile
  double beside = 0;      // kernels run meanwhile …
  double sheltering = 0;  // … these
  bool shelters = false;
  std::vector<LayerItem> items = items_[kind];
  if (!forwards) std::ranges::reverse(items);
  for (const LayerItem& item : items) {
    if (!runs(item, work.part)) continue;
    const double times = recompute ? item.again * work.times : work.times;
    OpCost cost;
    if (!item.moves) {
      if (!shelters) continue;
      cost.kernels.push_back(item.kernel);
      sheltering += alone(std::move(cost)) * times;
      shelters = false;
      continue;
    }
    cost.collectives.push_back(item.collective);
    const double seconds = alone(std::move(cost)) * times;
    InsideTransfer& axis = entry_of(found.axes, stream_of(item.collective.group));
    axis.seconds += seconds;
    axis.traffic += times * traffic_of(item.collective, plan_.cluster, plan_.layout);
    const double stops = item.beside ? 0 : axis.axis == Stream::expert_parallel ? left : 1;
    stopping += stops * seconds;
    beside += (1 - stops) * seconds;
    shelters |= item.beside;
  }
  const double took = alone(std::move(whole));
  // A hidden exchange of experts runs beside all kernels of the layer.
  if (left < 1) sheltering = std::max(sheltering, took - stopping);
  found.rest = std::max(0.0, took - stopping - std::max(beside, sheltering));
  return found;
}

}  // namespace shardwise::sim
