#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise::view {

/// A layout one choice away from the plan's, as a row of bars.
struct NeighbourBar {
  Layout layout;
  std::string text;     // "pp 4, dp_shard 4": what is set
  Bytes memory;         // of the neighbour
  Bytes memory_gained;  // below zero it needs more
  Seconds time_gained;  // of a step; below zero it takes longer
  Fit fit = Fit::fits;
  double time_share = 0;    // gained, of the plan's step
  double memory_share = 0;  // gained, of the usable memory
};

/// All of them: those that fit first, each by the time that they gain. Asked to stop, fewer.
std::vector<NeighbourBar> neighbour_bars(const Plan& plan, Seconds step,
                                         const std::stop_token& stop);

/// "-4.20 s", "+1.10 s": what changes, not what is gained.
std::string change_text(const NeighbourBar& bar);
std::string memory_change_text(const NeighbourBar& bar);

}  // namespace shardwise::view
