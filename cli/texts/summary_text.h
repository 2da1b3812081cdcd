#pragma once

#include <string>
#include <string_view>

#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// The first screen of a report, in 80 columns; --long has the rest.

/// Where the time goes: compute, the three parts that cost most, the rest, the step; and of the
/// fullest GPU's memory the three largest categories, the rest, the total.
std::string costs_text(const StepReport& report, bool colour);
/// The time of them alone.
std::string time_costs_text(const StepReport& report, bool colour);
/// Tokens a second, MFU, cost of report.step_time, whose `origin` leads: "simulated".
std::string short_rates_text(const StepReport& report, std::string_view origin, bool colour);

/// Where the step and its parts come from: "closed-form estimate", "simulated".
std::string_view origin_words(const StepReport& report);
/// "Time of a step on the slowest stage, simulated".
std::string time_heading(const StepReport& report);
/// `report` with the rates and cost of a step of this length. Its parts stay those of its own step.
StepReport with_step(StepReport report, Seconds step);

/// Parts that --long and --explain print, in a line. `more` begins it: "memory by phase, …".
std::string more_text(const StepReport& report, std::string_view more, bool colour);

}  // namespace shardwise::cli
