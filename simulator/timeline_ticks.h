#pragma once

#include <string>
#include <vector>

#include "planner/spec/units.h"

namespace shardwise::sim {

/// A mark on an axis: in seconds or bytes, with the label that people read.
struct Tick {
  double value = 0;
  std::string label;  // "0", "0.5 s", "20 GiB"
};

/// Marks of an axis from 0 to `length`, all in one unit: 5 to 12 steps of 1, 2 or 5 times a power
/// of ten. Only 0 where `length` is not above 0.
std::vector<Tick> time_ticks(Seconds length);

/// Marks of an axis of `length` of which only `drawn` in all is drawn, from `from` to `to` here.
/// \pre 0 < drawn <= length
std::vector<Tick> time_ticks_between(Seconds from, Seconds to, Seconds drawn, Seconds length);

/// The same for memory, in KiB, MiB or GiB: 2 to 5 steps.
std::vector<Tick> memory_ticks(Bytes most);

}  // namespace shardwise::sim
