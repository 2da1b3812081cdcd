#pragma once

#include "planner/spec/json/reader.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Adds to `root`, the reader of a report's file, what no step can be whatever its fields are by
/// themselves: an unknown origin, no time at all, parts that do not add up to the step, a clock
/// without its timeline.
void check_report(ObjectReader& root, const StepReport& report);

}  // namespace shardwise
