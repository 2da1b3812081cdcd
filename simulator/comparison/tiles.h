#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/table.h"

namespace shardwise::sim {

/// One of the few numbers that people look at first, in words.
struct Tile {
  std::string_view id;  // "step_time"
  std::string_view label;
  std::string value;
  std::string note;  // what it is of
  Tone tone = Tone::plain;
  std::string measured;  // empty: not measured
  std::string error;     // (predicted - measured) / measured, "+3.1 %"
};

/// Time in which ranks wait for one another's messages and nothing computes, on the slowest stage.
Seconds exposed_communication(const StepReport& report);

/// Step time, MFU, tokens, peak memory, bubble, exposed communication, cost: the first line of a
/// report and of the viewer. \param measured  may be null
std::vector<Tile> tiles(const Plan& plan, const StepReport& report, const StepReport* measured);

}  // namespace shardwise::sim
