#include "planner/schedule/plain_sweep.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardwise {
namespace {

constexpr std::size_t kParts = 4;  // LayerPart of a pass

std::size_t index(std::int32_t at) { return static_cast<std::size_t>(at); }

/// Seconds of a slot in both runs.
std::vector<TwoEnds> slot_seconds(std::span<const ChunkTime> chunks, Seconds hop) {
  std::vector<TwoEnds> seconds;
  seconds.reserve(kParts * chunks.size() + 1);
  for (const ChunkTime& chunk : chunks) {
    for (std::size_t part = 0; part < kParts; ++part) {
      const double each = chunk.of(static_cast<LayerPart>(part)).value();
      seconds.push_back({TwoEnds::Both{each, each}});
    }
  }
  seconds.push_back({TwoEnds::Both{hop.value(), 0}});
  return seconds;
}

TwoEnds::Both begin_of(const PlainSlots::Slot& slot, const TwoEnds* ends) {
  const auto later = [](TwoEnds::Both a, TwoEnds::Both b) { return a < b ? b : a; };
  const auto end = [&](std::size_t i) { return ends[index(slot.after[i])].both; };
  return later(later(end(0), end(1)), later(end(2), end(3)));
}

}  // namespace

RunAndLength sweep_plain(const PlainSlots& slots, std::span<const ChunkTime> chunks, Seconds hop,
                         SlotEnds& ends) {
  const std::vector<TwoEnds> seconds = slot_seconds(chunks, hop);
  const std::size_t count = slots.slots.size();
  ends.both.resize(count + 1);
  TwoEnds* const both = ends.both.data();
  both[count].both = TwoEnds::Both{0, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const PlainSlots::Slot& slot = slots.slots[i];
    both[i].both = begin_of(slot, both) + seconds[index(slot.takes)].both;
  }
  ends.end.resize(count);
  for (std::size_t i = 0; i < count; ++i) ends.end[i] = both[i].both[0];
  RunAndLength found;
  found.run.swept = static_cast<std::int64_t>(count);
  found.run.spans.reserve(slots.chunks.size());
  for (const PlainSlots::Chunk& chunk : slots.chunks) {
    const TwoEnds::Both end = both[index(chunk.last)].both;
    found.run.spans.push_back(
        {Seconds(begin_of(slots.slots[index(chunk.first)], both)[0]), Seconds(end[0]), chunk.part});
    found.run.length = std::max(found.run.length, Seconds(end[0]));
    found.without_messages = std::max(found.without_messages, Seconds(end[1]));
  }
  return found;
}

}  // namespace shardwise
