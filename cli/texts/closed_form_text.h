#pragma once

#include <string>

#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// Differences between a simulated step and the step-time model: by mechanism, and by part of the
/// step where they differ by more than 0.1 % of it. Empty for a report without them.
std::string closed_form_text(const StepReport& report, bool colour);

}  // namespace shardwise::cli
