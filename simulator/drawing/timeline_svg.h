#pragma once

#include <string>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"
#include "simulator/drawing/timeline_heading.h"

namespace shardwise::sim {

/// The simulated step as a picture (SVG 1.1), readable on light and dark pages:
/// - a lane for the compute stream of each of the first 16 stages, with the micro-batches as
/// blocks;
/// - idle time hatched, and the idle and bubble shares of each stage beside its lane;
/// - thinner lanes for the other streams where there are at most 4 stages;
/// - memory of the fullest stage, with a line at the memory that a plan may use;
/// - an axis in time and a legend.
/// Operations of one role that follow one another for the same micro-batch are one block. Equal
/// simulations give equal text.
std::string timeline_svg(const Plan& plan, const Simulation& simulation,
                         TimelineTitle title = TimelineTitle::above);

}  // namespace shardwise::sim
