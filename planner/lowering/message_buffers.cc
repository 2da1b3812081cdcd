#include "planner/lowering/message_buffers.h"

#include "planner/cost/stage_moments.h"
#include "planner/spec/check.h"

namespace shardwise {

void MessageBuffers::make(Use use) {
  std::vector<Slot>& slots = slots_[static_cast<std::size_t>(use)];
  if (bytes_ == 0 || own_ || !slots.empty()) return;
  for (std::int64_t i = 0; i < kBuffersADirection; ++i) {
    Slot slot;
    slot.buffer = builder_.buffer(MemoryCategory::working, bytes_);
    builder_.allocate_with_first(slot.buffer);
    slots.push_back(slot);
  }
}

BufferId MessageBuffers::fill(Use use, OperationLists& lists) {
  if (bytes_ == 0) return kNone;
  if (own_) {
    lists.allocates.push_back(builder_.buffer(MemoryCategory::working, bytes_));
    return lists.allocates.back();
  }
  std::vector<Slot>& slots = slots_[static_cast<std::size_t>(use)];
  std::size_t& next = next_[static_cast<std::size_t>(use)];
  const Slot& slot = slots[next];
  next = (next + 1) % slots.size();
  lists.waits.push_back(slot.filled == kNone ? builder_.first() : slot.emptied);
  lists.uses.push_back(slot.buffer);
  return slot.buffer;
}

MessageBuffers::Slot& MessageBuffers::slot_of(BufferId buffer) {
  for (std::vector<Slot>& slots : slots_) {
    for (Slot& slot : slots) {
      if (slot.buffer == buffer) return slot;
    }
  }
  SHARDWISE_CHECK(false, "no buffer of a message");
}

void MessageBuffers::filled(BufferId buffer, OpId op) {
  if (buffer != kNone && !own_) slot_of(buffer).filled = op;
}

void MessageBuffers::emptied(BufferId buffer, OpId op) {
  if (buffer != kNone && !own_) slot_of(buffer).emptied = op;
}

void MessageBuffers::before_end(OperationLists& lists) const {
  if (bytes_ > 0 && !own_ && !sends_gradients()) lists.waits.push_back(builder_.last(Stream::send));
}

void MessageBuffers::finish() {
  for (std::size_t use = 0; use < slots_.size(); ++use) {
    for (const Slot& slot : slots_[use]) {
      const bool sent = use >= static_cast<std::size_t>(Use::send_forward) && sends_gradients();
      const OpId last = builder_.last(sent ? Stream::send : Stream::compute);
      builder_.also_frees(last, slot.buffer);
    }
  }
}

}  // namespace shardwise
