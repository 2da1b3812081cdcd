#pragma once

#include "planner/spec/plan.h"
#include "planner/spec/report.h"
#include "simulator/simulate.h"
#include "simulator/stage_summary.h"

namespace shardwise::sim {

/// The rank that a report speaks of for a stage; any rank.
StageRunTimes run_times(const Simulation& simulation, std::size_t stage);
StageRunTimes run_times(const Simulation& simulation, const Actor& actor);

/// Puts the simulated step into a report that holds the closed form's: times by part on the stage
/// that computes longest, exposed communication by axis, rates, and the timeline of every stage.
void fill_report(StepReport& report, const Plan& plan, const Simulation& simulation);

}  // namespace shardwise::sim
