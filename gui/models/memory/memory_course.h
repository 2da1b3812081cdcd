#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/report/memory_labels.h"
#include "planner/spec/text/units.h"
#include "simulator/clock/simulate.h"

namespace shardwise::view {

/// The memory of one rank over a step, by group, in equal parts of the step: in each, the moment at
/// which most was allocated. What is outside the allocator is there all the time and not in it.
struct MemoryCourseView {
  std::size_t stage = 0;
  std::vector<GroupedBytes> columns;
  std::size_t peak = 0;  // the column of the peak
  Bytes allocated;       // at the clock's peak: the sum of that column
  Seconds peak_at;
  Bytes outside;  // the framework's allocator

  Bytes total(std::size_t column) const;
};

/// \pre the simulation is of a step of more than no time
MemoryCourseView memory_course(const sim::Simulation& simulation, AllocatorKind allocator,
                               std::size_t stage, std::size_t columns);

/// A line of the buffers that are alive at the peak.
struct LiveLine {
  std::string label;  // "activations, layer 12"
  std::int64_t count = 0;
  Bytes bytes;  // together
};
/// Those of a group, most bytes first.
std::vector<LiveLine> live_lines(const StepReport& report, std::size_t stage, MemoryGroup group);

}  // namespace shardwise::view
