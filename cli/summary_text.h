#pragma once

#include <string>
#include <string_view>

#include "planner/spec/report.h"

namespace shardwise::cli {

/// The first screen of a report, in 80 columns; --long has the rest.

/// Where the time goes: compute, the three parts that cost most, what is left; and of the fullest
/// GPU's memory the three largest categories and what is left.
std::string costs_text(const StepReport& report, bool colour);
/// The time of them alone.
std::string time_costs_text(const StepReport& report, bool colour);
/// Tokens a second, MFU, cost, in a line or two.
std::string short_rates_text(const StepReport& report, bool colour);
/// What --long and --explain print, in a line. `more` begins it: "memory by phase, …".
std::string more_text(const StepReport& report, std::string_view more, bool colour);

}  // namespace shardwise::cli
