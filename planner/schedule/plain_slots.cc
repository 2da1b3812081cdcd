#include "planner/schedule/plain_slots.h"

#include <cstddef>

namespace shardwise {

namespace {

constexpr std::size_t kPassParts = 4;  // LayerPart of a pass

std::size_t index_of(std::int32_t at) { return static_cast<std::size_t>(at); }

}  // namespace

PlainSlots plain_slots(const PipelineSlots& slots) {
  const auto none = static_cast<std::int32_t>(slots.slots.size());
  const std::size_t stages = index_of(slots.stages);
  PlainSlots plain;
  plain.slots.reserve(slots.slots.size());
  plain.chunks.resize(stages * index_of(slots.chunks));
  // By stage: the last slot that computes, and that sends a message, and that brings one.
  std::vector<std::int32_t> computes(stages, none);
  std::vector<std::int32_t> sends(stages, none);
  std::vector<std::int32_t> brings(stages, none);
  for (std::int32_t i = 0; i < none; ++i) {
    const PipelineSlots::Slot& slot = slots.slots[index_of(i)];
    const auto after = [&](std::size_t which) {
      return slot.after[which] < 0 ? none : slot.after[which];
    };
    std::int32_t& own = (slot.message ? sends : computes)[index_of(slot.stage)];
    std::int32_t& into = slot.message ? brings[index_of(slot.to)] : own;
    const std::size_t place = index_of(slot.stage) * index_of(slots.chunks) + index_of(slot.chunk);
    const std::size_t takes = slot.message
                                  ? kPassParts * plain.chunks.size()
                                  : kPassParts * place + static_cast<std::size_t>(slot.part);
    plain.slots.push_back({{after(0), after(1), own, into}, static_cast<std::int32_t>(takes)});
    own = into = i;
    if (slot.message) continue;
    PlainSlots::Chunk& chunk = plain.chunks[place];
    if (slot.first) chunk.first = i;
    chunk.last = i;
    chunk.part = slot.part;
  }
  return plain;
}

}  // namespace shardwise
