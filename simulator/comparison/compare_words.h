#pragma once

#include <string>
#include <vector>

#include "planner/spec/report/report.h"

namespace shardwise::sim {

/// Job and layout of a report where they are not those of another: "vpp 4 instead of 2".
std::vector<std::string> differing_settings(const StepReport& report, const StepReport& other);

/// Differences of two reports' work, beside which a difference of times is of the work, too:
/// "models", "batch sizes", "sequence lengths".
std::vector<std::string> other_work(const StepReport& report, const StepReport& other);

}  // namespace shardwise::sim
