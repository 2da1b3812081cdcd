#include "planner/schedule/schedule.h"

namespace shardwise {

std::vector<PipelinePass> gpipe_order(const PipelinePlace& place) {
  std::vector<PipelinePass> order;
  for (const LayerPart part : {LayerPart::forward, LayerPart::backward}) {
    for (std::int32_t m = 0; m < place.microbatches; ++m) order.push_back({part, 0, m});
  }
  return order;
}

}  // namespace shardwise
