#pragma once

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Needs of a plan that this executor does not meet, by key, with what it does do as hint; empty
/// when the plan can run. Nothing is allocated before this is asked.
Diagnostics cannot_execute(const Plan& plan);

}  // namespace shardwise::exec
