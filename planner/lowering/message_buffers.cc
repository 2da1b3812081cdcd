#include "planner/lowering/message_buffers.h"

#include <algorithm>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise {

void MessageBuffers::make(Use use, std::int32_t neighbour, std::int64_t slots) {
  const bool made = std::ranges::any_of(
      turns_, [&](const Turns& t) { return t.use == use && t.neighbour == neighbour; });
  if (bytes_ == 0 || made) return;
  Turns turns;
  turns.use = use;
  turns.neighbour = neighbour;
  for (std::int64_t i = 0; i < slots; ++i) {
    Slot slot;
    slot.buffer = builder_.buffer(MemoryCategory::working, bytes_);
    builder_.allocate_with_first(slot.buffer);
    turns.slots.push_back(slot);
  }
  turns_.push_back(std::move(turns));
}

BufferId MessageBuffers::fill(Use use, std::int32_t neighbour, OperationLists& lists) {
  if (bytes_ == 0) return kNone;
  const auto turns = std::ranges::find_if(
      turns_, [&](const Turns& t) { return t.use == use && t.neighbour == neighbour; });
  SHARDWISE_CHECK(turns != turns_.end(), "no buffers for a message");
  const Slot& slot = turns->slots[turns->next];
  turns->next = (turns->next + 1) % turns->slots.size();
  SHARDWISE_CHECK(slot.filled == kNone || slot.emptied != kNone, "a message waits for itself");
  lists.waits.push_back(slot.filled == kNone ? builder_.first() : slot.emptied);
  lists.uses.push_back(slot.buffer);
  return slot.buffer;
}

MessageBuffers::Slot& MessageBuffers::slot_of(BufferId buffer) {
  for (Turns& turns : turns_) {
    for (Slot& slot : turns.slots) {
      if (slot.buffer == buffer) return slot;
    }
  }
  SHARDWISE_CHECK(false, "no buffer of a message");
}

bool MessageBuffers::sends_gradients() const {
  return std::ranges::find(turns_, Use::send_backward, &Turns::use) != turns_.end();
}

void MessageBuffers::filled(BufferId buffer, OpId op) {
  if (buffer == kNone) return;
  Slot& slot = slot_of(buffer);
  slot.filled = op;
  slot.emptied = kNone;
}

void MessageBuffers::emptied(BufferId buffer, OpId op) {
  if (buffer != kNone) slot_of(buffer).emptied = op;
}

void MessageBuffers::before_end(OperationLists& lists) const {
  if (bytes_ > 0 && !sends_gradients()) lists.waits.push_back(builder_.last(Stream::send));
}

void MessageBuffers::finish() {
  for (const Turns& turns : turns_) {
    const bool sends = turns.use == Use::send_forward || turns.use == Use::send_backward;
    const OpId last = builder_.last(sends && sends_gradients() ? Stream::send : Stream::compute);
    for (const Slot& slot : turns.slots) builder_.also_frees(last, slot.buffer);
  }
}

}  // namespace shardwise
