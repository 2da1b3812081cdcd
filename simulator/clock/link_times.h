#pragma once

#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/step_timeline.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// Traffic of each link of the first rank of each stage in the simulated step: its own link of
/// each tier that it sends over, or the NIC that it shares with neighbours of any stage, and the
/// up-links of oversubscribed switches. Bytes are those of the collectives, as traffic_of has them,
/// those inside a layer's pass among them.
std::vector<std::vector<LinkTime>> link_times(const Plan& plan, const Simulation& simulation);

}  // namespace shardwise::sim
