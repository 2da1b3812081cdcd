#include "planner/schedule/schedule.h"

namespace shardwise {

std::vector<PipelinePass> looped_bfs_order(const PipelinePlace& place) {
  std::vector<PipelinePass> order;
  const auto chunk = [&](LayerPart part, std::int32_t number) {
    for (std::int32_t m = 0; m < place.microbatches; ++m) {
      order.push_back({part, static_cast<std::int16_t>(number), m});
    }
  };
  for (std::int32_t c = 0; c < place.vpp; ++c) chunk(LayerPart::forward, c);
  for (std::int32_t c = place.vpp; c-- > 0;) chunk(LayerPart::backward, c);
  return order;
}

}  // namespace shardwise
