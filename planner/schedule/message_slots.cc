#include "planner/schedule/message_slots.h"

#include <algorithm>

namespace shardwise {

MessageSlots message_slots(const Layout& layout, std::int32_t stage,
                           std::int64_t num_microbatches) {
  constexpr std::int64_t kTwo = 2;
  MessageSlots slots = {kTwo, kTwo, kTwo};
  if (layout.schedule == PipelineSchedule::looped_bfs && layout.vpp > 1) {
    const std::int64_t waiting = std::max(kTwo, num_microbatches - layout.pp);
    if (stage == 0) slots.receive_forward = waiting;
    if (stage + 1 == layout.pp) slots.receive_backward = waiting;
  }
  return slots;
}

}  // namespace shardwise
