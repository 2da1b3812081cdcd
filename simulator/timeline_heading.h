#pragma once

#include <string>

#include "planner/spec/plan.h"
#include "planner/spec/report.h"
#include "simulator/timeline_colours.h"

namespace shardwise::sim {

/// The begin of a timeline's SVG of that size in pixels: its styles and hatches, the page, and a
/// title with the layout, the schedule, the batch and the step.
std::string timeline_heading(const Plan& plan, const StepReport& report,
                             const TimelineColours& colours, double width, double height);

}  // namespace shardwise::sim
