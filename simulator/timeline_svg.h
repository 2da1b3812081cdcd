#pragma once

#include <string>

#include "planner/spec/plan.h"
#include "simulator/simulate.h"

namespace shardwise::sim {

/// The simulated step as a picture (SVG 1.1): a lane for the compute stream of each stage, with the
/// micro-batches as blocks and idle time hatched, thinner lanes for the other streams where there
/// are few stages, memory of the fullest stage, an axis and a legend. Operations of one role that
/// follow one another for the same micro-batch are one block. Equal simulations give equal text.
std::string timeline_svg(const Plan& plan, const Simulation& simulation);

}  // namespace shardwise::sim
