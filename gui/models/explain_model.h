#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/report.h"

namespace shardwise::view {

/// Why a number is what it is.
struct WhyNumber {
  std::string subject;  // "time.bubble"
  std::string formula;
  std::string values;
  std::string source;
};

/// Of a tile of the summary: "step", "mfu", "memory" … Never empty.
/// \pre the report has its explanations
WhyNumber why_tile(const StepReport& report, std::string_view tile);

/// Every explanation of the report whose subject has `words` in it, then its assumptions.
std::vector<WhyNumber> why_numbers(const StepReport& report, std::string_view words);

}  // namespace shardwise::view
