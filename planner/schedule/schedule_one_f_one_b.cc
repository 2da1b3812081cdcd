#include <algorithm>

#include "planner/schedule/schedule.h"

namespace shardwise {

std::vector<PipelinePass> one_f_one_b_order(const PipelinePlace& place) {
  std::vector<PipelinePass> order;
  const std::int32_t warm_up = std::min(place.pp - 1 - place.stage, place.microbatches);
  for (std::int32_t m = 0; m < warm_up; ++m) order.push_back({LayerPart::forward, 0, m});
  for (std::int32_t m = 0; m < place.microbatches; ++m) {
    if (m + warm_up < place.microbatches) {
      order.push_back({LayerPart::forward, 0, m + warm_up});
    }
    order.push_back({LayerPart::backward, 0, m});
  }
  return order;
}

}  // namespace shardwise
