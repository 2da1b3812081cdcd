#pragma once

#include <string>
#include <vector>

#include "planner/spec/report/report.h"

namespace shardwise::view {

/// A step of a waterfall from the winner to another layout.
struct WaterStep {
  std::string label;
  double change = 0;  // of the unit; the changes of all steps sum to other - winner
};
struct Waterfall {
  double winner = 0;
  double other = 0;
  std::vector<WaterStep> steps;  // largest first
};

/// Parts of the step's time, in seconds. Parts that change little are one step.
Waterfall time_waterfall(const StepReport& winner, const StepReport& other);
/// Groups of memory on the fullest GPU, in bytes.
Waterfall memory_waterfall(const StepReport& winner, const StepReport& other);

/// "12.3 % slower and 4.1 GiB more than the best", "does not fit: 3.2 GiB over on stage 0".
std::string verdict_text(const StepReport& winner, const StepReport& other);

}  // namespace shardwise::view
