#include <algorithm>

#include "planner/schedule/schedule.h"

namespace shardwise {

std::vector<PipelinePass> interleaved_order(const PipelinePlace& place) {
  const std::int32_t round = place.pp * place.vpp;  // pp micro-batches through all chunks
  const std::int32_t passes = place.microbatches * place.vpp;
  const auto pass = [&](LayerPart part, std::int32_t k) {
    const std::int32_t chunk = k % round / place.pp;
    const std::int32_t back = place.vpp - 1 - chunk;
    return PipelinePass{part, static_cast<std::int16_t>(part == LayerPart::forward ? chunk : back),
                        k / round * place.pp + k % place.pp};
  };
  std::vector<PipelinePass> order;
  const std::int32_t warm_up =
      std::min(2 * (place.pp - 1 - place.stage) + (place.vpp - 1) * place.pp, passes);
  for (std::int32_t k = 0; k < warm_up; ++k) order.push_back(pass(LayerPart::forward, k));
  for (std::int32_t k = 0; k < passes; ++k) {
    if (k + warm_up < passes) order.push_back(pass(LayerPart::forward, k + warm_up));
    order.push_back(pass(LayerPart::backward, k));
  }
  return order;
}

}  // namespace shardwise
