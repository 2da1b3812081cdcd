#pragma once

#include <vector>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/stage_summary.h"

namespace shardwise::sim {

/// The rank that a report speaks of for a stage; any rank.
StageRunTimes run_times(const Simulation& simulation, std::size_t stage);
StageRunTimes run_times(const Simulation& simulation, const Actor& actor);

/// The steps of all simulated ranks, in the order of actors. \pre the simulation outlives them
std::vector<RecordedStep> recorded_ranks(const Simulation& simulation);

/// Timeline of a simulated report; an empty one of others.
const StepTimeline& timeline_of(const StepReport& report);

/// Bytes of a stage's GPU outside the framework's allocator, at the peak of its ledger:
/// runtime context and communicators. Added to what the allocator reserves it is what nvidia-smi
/// shows.
Bytes outside_allocator(const StepReport& report, std::size_t stage);

/// Communication inside the passes of an actor, by operation. `scales` are those of the simulation.
std::vector<WithinPass> within_passes(const Plan& plan, const Simulation& simulation,
                                      const Actor& actor, std::span<const PriceScale> scales = {});

/// Puts the simulated step into a report that has the step-time model's: times by part on the stage
/// that computes longest, exposed communication by axis, rates, and the timeline of every stage.
void fill_report(StepReport& report, const Plan& plan, const Simulation& simulation,
                 std::span<const PriceScale> scales = {});

}  // namespace shardwise::sim
