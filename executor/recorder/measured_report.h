#pragma once

#include <span>

#include "executor/recorder/rank_record.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::exec {

/// Measurements of a stage's ranks in the shape of a prediction: the same memory phases and
/// categories, the same operation names, the same parts of the step. Step, parts, axes and timeline
/// are those of the rank whose compute stream is busiest (busiest_of()). Memory is the most that
/// any rank held: by phase, and over the steady step; so is the growth of processes. The critical
/// path is that of all ranks where all were recorded by one clock, else that of the busiest rank.
/// What a run does not measure (bounds, prices, checkpoints) is that of the plan. \param ranks with
/// both steps recorded; at least one
StepReport measured_report(const Plan& plan, std::span<const RankRecord> ranks);

}  // namespace shardwise::exec
