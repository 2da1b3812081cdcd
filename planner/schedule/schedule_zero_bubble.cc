#include <algorithm>

#include "planner/schedule/schedule.h"

namespace shardwise {
namespace {

/// Forward passes run `ahead` of input gradients, those `delay` ahead of weight gradients. What a
/// stage waits for in the end is filled with the weight gradients that were put off.
std::vector<PipelinePass> delayed(const PipelinePlace& place, std::int32_t ahead,
                                  std::int32_t delay) {
  const std::int32_t all = place.microbatches;
  const std::int32_t warm_up = std::min(ahead, all);
  std::vector<PipelinePass> order;
  for (std::int32_t m = 0; m < warm_up; ++m) order.push_back({LayerPart::forward, 0, m});
  for (std::int32_t m = 0; m < all; ++m) {
    if (m + warm_up < all) order.push_back({LayerPart::forward, 0, m + warm_up});
    order.push_back({LayerPart::backward_input, 0, m});
    if (m >= delay) order.push_back({LayerPart::backward_weight, 0, m - delay});
  }
  for (std::int32_t m = std::max(0, all - delay); m < all; ++m) {
    order.push_back({LayerPart::backward_weight, 0, m});
  }
  return order;
}

}  // namespace

std::vector<PipelinePass> zb_h1_order(const PipelinePlace& place) {
  return delayed(place, place.pp - 1 - place.stage, place.stage);
}

std::vector<PipelinePass> zb_h2_order(const PipelinePlace& place) {
  return delayed(place, 2 * (place.pp - 1 - place.stage), 2 * place.stage);
}

}  // namespace shardwise
