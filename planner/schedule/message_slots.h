#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Buffers of a planned arena for messages of one direction between a stage and a neighbour.
struct MessageSlots {
  std::int64_t receive_forward = 0;
  std::int64_t receive_backward = 0;
  std::int64_t send_forward = 0;
  std::int64_t send_backward = 0;
};
/// No more than there are messages. Two are enough, one on its way while the other is computed
/// with, but where looped BFS goes
/// round: the first stage takes in what the last one made of all micro-batches but the pp that are
/// under way before it reads any of them, and the last stage gradients of the first.
MessageSlots message_slots(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches);

}  // namespace shardwise
