#pragma once

#include <string>

#include "planner/spec/diagnostic.h"
#include "planner/spec/plan.h"

namespace shardwise::exec {

/// What a plan needs that this executor does not do, one line each with what it does do as hint;
/// empty when the plan can run. Nothing is allocated before this is asked.
/// \param file  the plan's name, for messages
Diagnostics cannot_execute(const Plan& plan, const std::string& file);

}  // namespace shardwise::exec
