#pragma once

#include <string>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/versus.h"

namespace shardwise::cli {

/// Two engines side by side, then what each mechanism in which they differ contributes.
std::string versus_text(const sim::Versus& found, const Plan& first, const Plan& second,
                        bool colour);
/// The same facts for a program.
std::string versus_json(const sim::Versus& found, const Plan& first, const Plan& second);

}  // namespace shardwise::cli
