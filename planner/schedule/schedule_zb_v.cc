#include "planner/schedule/pass_list.h"

namespace shardwise {

std::vector<PipelinePass> zb_v_order(const PipelinePlace& place) {
  constexpr std::int16_t kDown = 0;  // the chunk that the first half of the model is on
  constexpr std::int16_t kUp = 1;
  const std::int32_t stages_below = place.pp - place.stage;
  PassList list;
  for (std::int32_t i = 0; i < 2 * stages_below - 1; ++i) list.forward(kDown);
  for (std::int32_t i = 0; i < place.stage; ++i) {
    list.forward(kUp);
    list.forward(kDown);
  }
  for (std::int32_t i = 0; i < stages_below; ++i) {
    list.forward(kUp);
    list.backward_input(kUp);
    list.weight();
  }
  while (list.forwards(kUp) < place.microbatches) {
    if (list.forwards(kDown) < place.microbatches) list.forward(kDown);
    list.backward_input(kDown);
    list.weight();
    list.forward(kUp);
    list.backward_input(kUp);
    list.weight();
  }
  for (std::int32_t i = 0; i < place.stage; ++i) {
    list.backward_input(kDown);
    list.backward_input(kUp);
  }
  for (std::int32_t i = 0; i < stages_below; ++i) {
    list.backward_input(kDown);
    list.weight();
  }
  while (list.weights_put_off()) list.weight();
  return list.take();
}

}  // namespace shardwise
