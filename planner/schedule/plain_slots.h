#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/schedule/pipeline_slots.h"

namespace shardwise {

/// Slots without loops whose messages take no turns, as the plain sweep reads them.
struct PlainSlots {
  struct Slot {
    /// Slots whose end it waits for: also those that leave free what it needs, a stage's compute,
    /// the way out of it or into another. One more than the last: none.
    std::array<std::int32_t, 4> after;
    std::int32_t takes = 0;  // place of its seconds: of chunk and part, then a message's
  };
  std::vector<Slot> slots;
  /// By stage x chunks + chunk.
  struct Chunk {
    std::int32_t first = 0;  // slot of its first pass
    std::int32_t last = 0;
    LayerPart part = LayerPart::forward;  // of that
  };
  std::vector<Chunk> chunks;
};
/// \pre no loops, and messages take no turns
PlainSlots plain_slots(const PipelineSlots& slots);

}  // namespace shardwise
