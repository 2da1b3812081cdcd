#pragma once

#include "executor/recorder/rank_record.h"
#include "planner/spec/plan.h"
#include "planner/spec/report.h"

namespace shardwise::exec {

/// What a rank measured, in the shape of a prediction: the same memory phases and categories, the
/// same operation names, the same parts of the step. What a run does not measure (bounds, prices,
/// checkpoints) is that of the plan.
StepReport measured_report(const Plan& plan, const RankRecord& record);

/// Where the step's time went: what the compute stream ran, by role; what it waited for with
/// nothing to run is data parallel, exposed; before the first operation and after the last it is
/// input.
TimeParts measured_parts(const StepRecord& record);

/// How much of each operation ran with nothing on the compute stream, in nanoseconds.
std::vector<std::int64_t> exposed_ns(const StepRecord& record);

}  // namespace shardwise::exec
