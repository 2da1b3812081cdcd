#pragma once

#include "executor/recorder/rank_record.h"
#include "planner/spec/plan.h"
#include "planner/spec/report.h"

namespace shardwise::exec {

/// What a rank measured, in the shape of a prediction: the same memory phases and categories, the
/// same operation names, the same parts of the step. What a run does not measure (bounds, prices,
/// checkpoints) is that of the plan.
StepReport measured_report(const Plan& plan, const RankRecord& record);

}  // namespace shardwise::exec
