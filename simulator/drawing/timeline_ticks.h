#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/units.h"

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
std::vector<Tick> time_ticks_between(Seconds from, Seconds to, Seconds drawn, Seconds length,
                                     double parts = 5);

/// A moment of the step with the digits that tell a hundredth of `close` apart: "19.99035 s".
/// \pre close > 0
std::string moment_text(Seconds at, Seconds close);

/// The parts, at least, of an axis of which `room` is drawn, so that labels which take `label` each
/// do not touch: axes have up to two and a half times as many. At least 1.
double parts_within(double room, double label);

/// Ticks as above for memory, in the unit of `most` (memory_unit, KiB at least): 2 to 5 steps.
std::vector<Tick> memory_ticks(Bytes most);
/// Marks of an axis of memory of which `from` to `to` is drawn, in the unit of `to`. \pre from < to
std::vector<Tick> memory_ticks_between(Bytes from, Bytes to, double parts = 4);

/// End of an axis of memory: `limit` is in sight unless what is drawn would be too small to be seen
/// beside it.
Bytes memory_axis(Bytes most, Bytes limit);

/// Round values between two of a log axis: 1, 2 and 5 times powers of ten, or of those alone that
/// are 1; where fewer than three of them are between, steps as those of a plain axis. Few enough
/// for an axis that has room for nine. \pre 0 < from < to
std::vector<double> log_values(double from, double to);
/// Marks of log axes at such values of the unit of `from`. \pre 0 < from < to
std::vector<Tick> log_time_ticks(Seconds from, Seconds to);
std::vector<Tick> log_memory_ticks(Bytes from, Bytes to);

}  // namespace shardwise::sim
