#pragma once

#include <vector>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// A part of the step that is drawn, and where: seconds from `from` to `to`, pixels from `left` to
/// `right`.
struct TimeWindow {
  double from = 0;
  double to = 0;
  double left = 0;
  double right = 0;
  double x(double seconds) const { return left + (right - left) * (seconds - from) / (to - from); }
};

/// Parts of a step that `width` pixels show: all of it, or where passes would be too narrow
/// to be told apart its warm-up, some of its middle and its cool-down, on one scale.
/// \returns one window or three, in order
std::vector<TimeWindow> drawn_windows(const Plan& plan, const Simulation& simulation, double left,
                                      double width);

}  // namespace shardwise::sim
