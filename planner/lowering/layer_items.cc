#include "planner/lowering/layer_items.h"

#include <utility>

namespace shardwise {

std::vector<std::vector<LayerItem>> layer_items(const Plan& plan) {
  std::vector<std::vector<LayerItem>> all;
  for (const LayerSpec& layer : plan.model.kinds) {
    std::vector<LayerItem> items;
    layer_time(plan.model, layer, plan.job, plan.engine, plan.cluster, plan.layout, nullptr,
               &items);
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
