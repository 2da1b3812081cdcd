#include "planner/schedule/pass_list.h"

namespace shardwise {

std::vector<PipelinePass> dualpipe_v_order(const PipelinePlace& place) {
  constexpr std::int16_t kDown = 0;
  constexpr std::int16_t kUp = 1;
  const std::int32_t below = place.pp - 1 - place.stage;
  const std::int32_t from_end = place.stage + 1;
  PassList list;
  for (std::int32_t i = 0; i < 2 * below; ++i) list.forward(kDown);
  for (std::int32_t i = 0; i < from_end; ++i) {
    list.forward(kDown);
    list.forward(kUp);
  }
  for (std::int32_t i = 0; i < below; ++i) {
    list.backward_input(kUp);
    list.weight();
    list.forward(kUp);
  }
  // The steady part: a forward pass of one direction beside a backward pass of the other, but for
  // the first of the last stage, which would hold up the others.
  for (std::int32_t i = 0; i < place.microbatches - 2 * place.pp + from_end; ++i) {
    if (i == 0 && below == 0) {
      list.forward(kDown);
      list.backward(kUp);
    } else {
      list.both(kDown, kUp);
    }
    list.both(kUp, kDown);
  }
  for (std::int32_t i = 0; i < below; ++i) {
    list.backward(kUp);
    list.both(kUp, kDown);
  }
  // The first half of these passes whole, the second without their weight gradients.
  for (std::int32_t i = 0; i < 2 * from_end; ++i) {
    const std::int16_t chunk = i % 2 == 0 ? kUp : kDown;
    if (i < from_end) {
      list.backward(chunk);
    } else {
      list.backward_input(chunk);
    }
  }
  for (std::int32_t i = 0; i < below; ++i) {
    list.weight();
    list.backward_input(kDown);
  }
  while (list.weights_put_off()) list.weight();
  return list.take();
}

}  // namespace shardwise
