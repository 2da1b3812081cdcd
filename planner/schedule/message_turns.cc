#include "planner/schedule/message_turns.h"

#include "planner/schedule/message_slots.h"

namespace shardwise {
namespace {

/// Of the slots that empty `buffers` in turn the one that the next of their users waits for.
std::optional<std::int32_t> emptied(const std::vector<std::int32_t>& slots, std::size_t users,
                                    std::int64_t buffers) {
  const auto turns = static_cast<std::size_t>(buffers);
  if (users < turns) return -1;
  if (slots.size() <= users - turns) return std::nullopt;
  return slots[users - turns];
}

}  // namespace

MessageTurns::Ends MessageTurns::ends(std::int32_t message) const {
  const std::int32_t chunk = message / 2 % chunks_;
  const std::int32_t lower = stage_of_chunk(layout_, chunk);
  const std::int32_t upper = stage_of_chunk(layout_, chunk + 1);
  if (message % 2 != 0) return {upper, lower, true};
  return {lower, upper, false};
}

std::optional<std::int32_t> MessageTurns::before_message(std::int32_t message) {
  if (!planned_ || message < 0) return -1;
  const Ends at = ends(message);
  const Way& way = ways_[at];
  const MessageSlots buffers = message_slots(layout_, at.to, num_microbatches_);
  return emptied(way.read, way.arrived.size(),
                 at.backward ? buffers.receive_backward : buffers.receive_forward);
}

std::optional<std::int32_t> MessageTurns::before_pass(std::int32_t message) {
  if (!planned_ || message < 0) return -1;
  const Ends at = ends(message);
  const Way& way = ways_[at];
  const MessageSlots buffers = message_slots(layout_, at.from, num_microbatches_);
  return emptied(way.arrived, way.made, at.backward ? buffers.send_backward : buffers.send_forward);
}

void MessageTurns::made(std::int32_t message) {
  if (planned_ && message >= 0) ++ways_[ends(message)].made;
}

void MessageTurns::arrived(std::int32_t message, std::int32_t slot) {
  if (planned_ && message >= 0) ways_[ends(message)].arrived.push_back(slot);
}

void MessageTurns::read(std::int32_t message, std::int32_t slot) {
  if (planned_ && message >= 0) ways_[ends(message)].read.push_back(slot);
}

}  // namespace shardwise
