#pragma once

#include <string>

#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// Where a simulated step and the closed form part: by mechanism, and by part of the step where
/// they differ by more than 0.1 % of it. Nothing for a report without a closed form.
std::string closed_form_text(const StepReport& report, bool colour);

}  // namespace shardwise::cli
