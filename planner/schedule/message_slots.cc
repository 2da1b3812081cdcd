#include "planner/schedule/message_slots.h"

#include <algorithm>

#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

MessageSlots message_slots(const Layout& layout, std::int32_t stage,
                           std::int64_t num_microbatches) {
  constexpr std::int64_t kTwo = 2;
  MessageSlots slots = {kTwo, kTwo, kTwo, kTwo};
  if (layout.schedule == PipelineSchedule::looped_bfs && layout.vpp > 1) {
    const std::int64_t waiting = std::max(kTwo, num_microbatches - layout.pp);
    if (stage == 0) slots.receive_forward = waiting;
    if (stage + 1 == layout.pp) slots.receive_backward = waiting;
  }
  if (facts_of(layout).v_shaped) return slots;
  // Of each micro-batch one for each chunk, one less between the last stage and the first.
  const std::int64_t all = layout.vpp * num_microbatches;
  const std::int64_t before = stage == 0 ? all - num_microbatches : all;
  const std::int64_t after = stage + 1 == layout.pp ? all - num_microbatches : all;
  slots.receive_forward = std::min(slots.receive_forward, before);
  slots.send_backward = std::min(slots.send_backward, before);
  slots.receive_backward = std::min(slots.receive_backward, after);
  slots.send_forward = std::min(slots.send_forward, after);
  return slots;
}

}  // namespace shardwise
