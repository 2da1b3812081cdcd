#include <algorithm>

#include "planner/schedule/pass_list.h"

namespace shardwise {

std::vector<PipelinePass> dualpipe_order(const PipelinePlace& place) {
  const std::int32_t half_stages = place.pp / 2;
  const std::int32_t from_end = std::min(place.stage, place.pp - 1 - place.stage);
  const std::int32_t to_middle = half_stages - from_end - 1;
  const std::int32_t half = place.microbatches / 2;
  // The direction that starts at the nearer end, and the other one.
  const std::int16_t near = place.stage < half_stages ? 0 : 1;
  const auto far = static_cast<std::int16_t>(1 - near);
  PassList list;
  list.start(1, half);
  for (std::int32_t i = 0; i < 2 * to_middle; ++i) list.forward(near);
  for (std::int32_t i = 0; i <= from_end; ++i) {
    list.forward(near);
    list.forward(far);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.backward_input(far);
    list.weight();
    list.forward(far);
  }
  // The steady part: a forward pass of one direction beside a backward pass of the other, but for
  // the first of the stages in the middle, which would hold up the others.
  for (std::int32_t i = 0; i < half - place.pp + from_end + 1; ++i) {
    if (i == 0 && to_middle == 0) {
      list.forward(near);
      list.backward(far);
    } else {
      list.both(near, far);
    }
    list.both(far, near);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.backward(far);
    list.both(far, near);
  }
  // The first half of these passes whole, the second without their weight gradients.
  for (std::int32_t i = 0; i < 2 * (from_end + 1); ++i) {
    const std::int16_t chunk = i % 2 == 0 ? far : near;
    if (i < from_end + 1) {
      list.backward(chunk);
    } else {
      list.backward_input(chunk);
    }
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.weight();
    list.backward_input(near);
  }
  while (list.weights_put_off()) list.weight();
  return list.take();
}

}  // namespace shardwise
