#pragma once

#include <string>

#include "planner/question/plan_difference.h"

namespace shardwise::cli {

/// Two plans in 80 columns: their steps and memory, the fields that differ with the price of each.
std::string plan_differences_text(const PlanDifferences& found, bool colour);

/// Schema "shardwise.plan_differences/1".
std::string plan_differences_json(const PlanDifferences& found);

}  // namespace shardwise::cli
