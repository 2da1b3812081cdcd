#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/schedule/pipeline_slots.h"

namespace shardwise::test {

/// Slots one by one, without loops.
inline PipelineSlots unrolled(const PipelineSlots& slots) {
  PipelineSlots all = slots;
  all.slots.clear();
  all.room.clear();
  all.loops.clear();
  std::int32_t shift = 0;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const auto moved = [&](std::int32_t slot) { return slot < 0 ? slot : slot + shift; };
    for (std::size_t i = begin; i < end; ++i) {
      PipelineSlots::Slot& slot = all.slots.emplace_back(slots.slots[i]);
      for (std::int32_t& after : slot.after) after = moved(after);
      if (!slots.room.empty()) all.room.push_back(moved(slots.room[i]));
    }
  };
  std::size_t next = 0;
  for (const PipelineSlots::Loop& loop : slots.loops) {
    add(next, loop.begin);
    for (std::int64_t n = 0; n < loop.times; ++n) {
      if (n > 0) shift += static_cast<std::int32_t>(loop.length);
      add(loop.begin, loop.end());
    }
    next = loop.end();
  }
  add(next, slots.slots.size());
  return all;
}

}  // namespace shardwise::test
