#pragma once

#include <string>

#include "answers/asked_plan.h"
#include "answers/plan_question.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// The plan of the best layout; where none fits, of the nearest.
Result<Plan> best_plan(const sim::PlanQuestion& question);

/// Answers as `shardwise plan` does, with its defaults.
Result<Plan> best_plan(const sim::AskedPlan& asked);

/// The question of a plan with the model of a file, or with its cluster, and the best layout there.
Result<Plan> with_model(const Plan& plan, const std::string& file);
Result<Plan> with_cluster(const Plan& plan, const std::string& file);

/// The plan that a report is of, by the names in it. Settings that a report does not say are the
/// usual ones: its digest tells whether they were. \param file  the name put into diagnostics
Result<Plan> plan_of_report(const StepReport& report, const std::string& file);

}  // namespace shardwise::view
