#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/drawing/timeline_colours.h"

namespace shardwise::sim {

/// "tp 2, cp 1, pp 8 x 2 chunks by one_f_one_b, dp_shard 4, dp_replicate 1".
std::string degrees(const Layout& layout);

/// Whether a picture says what it is of: in a page, the page does.
enum class TimelineTitle : std::uint8_t { above, left_out };

/// The begin of a timeline's SVG of that size in pixels: its styles and hatches, the page, and a
/// title with the layout, the schedule, the batch and the step.
std::string timeline_heading(const Plan& plan, const StepReport& report, TimelineTitle title,
                             const TimelineColours& colours, double width, double height);

}  // namespace shardwise::sim
