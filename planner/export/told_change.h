#pragma once

#include <string>

#include "planner/export/framework/framework.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// The settings that make one plan of another, as the framework has them:
/// "zero_optimization.zero_hpz_partition_size: 8", "--pipeline-model-parallel-size 2, without
/// --sequence-parallel". Empty where the framework cannot be told one of the plans as it is, or
/// where its training script decides.
std::string told_change(const Framework& framework, const Plan& from, const Plan& to);

}  // namespace shardwise
