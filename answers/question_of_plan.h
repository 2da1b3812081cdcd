#pragma once

#include <cstddef>

#include "answers/plan_question.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::sim {

/// The question that a plan is an answer to: its model, job and engine on as many GPUs of its
/// cluster, in the usual space. \pre the plan outlives the question
PlanQuestion question_of(const Plan& plan, std::size_t top);

}  // namespace shardwise::sim
