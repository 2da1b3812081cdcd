#pragma once

#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Carries what a measured step took beyond its prediction over to another configuration:
/// `report.time.anchored` becomes the same share of this prediction that the difference was of that
/// one, and step_time and the rates follow. What the step-time model leaves out (clocks under load,
/// interference, a slow file system) grows with the work, so it is carried as a share.
///
/// \param measured   a report with origin "measured"
/// \param predicted  what the same configuration as `measured` was predicted to take, > 0
void anchor(StepReport& report, const StepReport& measured, Seconds predicted);

}  // namespace shardwise
