#include "planner/lowering/stage/layer_items.h"

#include <utility>

namespace shardwise {
namespace {

/// Makes the items of a pass take as many launches as `all`, those of the pass. Issuing a
/// collective may take the host as long as several kernels: where a pass takes more launches than
/// it has items, its collectives share the difference, and without collectives its kernels do.
void settle_launches(std::vector<LayerItem>& items, Pass pass, double all) {
  double counted = 0;
  double collectives = 0;
  for (const LayerItem& item : items) {
    if (item.pass == pass)
      (item.moves ? collectives : counted) += item.moves ? 1 : item.kernel.launches;
  }
  const bool by_collectives = collectives > 0 && all >= counted + collectives;
  const double rest = all - (by_collectives ? counted : collectives);
  const double parts = by_collectives ? collectives : counted;
  if (rest <= 0 || parts <= 0) return;
  for (LayerItem& item : items) {
    if (item.pass != pass || item.moves != by_collectives) continue;
    (item.moves ? item.launches : item.kernel.launches) *= rest / parts;
  }
}

}  // namespace

std::vector<std::vector<LayerItem>> layer_items(const Plan& plan) {
  std::vector<std::vector<LayerItem>> all;
  for (const LayerSpec& layer : plan.model.kinds) {
    std::vector<LayerItem> items;
    const LayerTime time = layer_time(plan.model, layer, plan.job, plan.engine, plan.cluster,
                                      plan.layout, nullptr, &items);
    settle_launches(items, Pass::forward, time.forward.kernels);
    settle_launches(items, Pass::backward, time.backward.kernels);
    all.push_back(std::move(items));
  }
  return all;
}

Stream stream_of(GroupKind group) {
  switch (group) {
    case GroupKind::tp:
      return Stream::tensor_parallel;
    case GroupKind::cp:
      return Stream::context_parallel;
    default:
      return Stream::expert_parallel;
  }
}

bool runs(const LayerItem& item, LayerPart part) {
  switch (part) {
    case LayerPart::forward:
      return item.pass == Pass::forward;
    case LayerPart::recompute:
      return item.pass == Pass::forward && item.again > 0;
    case LayerPart::backward:
      return item.pass == Pass::backward;
    case LayerPart::backward_input:
      return item.pass == Pass::backward && !item.weight;
    case LayerPart::backward_weight:
      return item.pass == Pass::backward && item.weight;
  }
  return false;
}

}  // namespace shardwise
