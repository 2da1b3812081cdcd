#pragma once

#include <string>

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

// A plan with another model, cluster or engine of the catalogue: legal, with as much of its layout
// as stays legal. Each returns the plan, or why there is none.

Result<Plan> with_named_model(const Plan& plan, const std::string& name);
Result<Plan> with_named_cluster(const Plan& plan, const std::string& name);
Result<Plan> with_named_engine(const Plan& plan, const std::string& name);

}  // namespace shardwise::view
