#pragma once

#include <map>
#include <string>

#include "planner/question/subject.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

// A power limit is no field of a job: a plan has the GPU under it.

inline constexpr const char* kPowerField = "power_limit";
inline constexpr const char* kPowerText =
    "Power that each GPU may draw, as nvidia-smi -pl sets it [what its maker rates it for]";

/// Takes the limit out of the texts of a job. \returns watts, 0 where nobody gives any
double take_power_limit(std::map<std::string, std::string>& texts, Diagnostics& problems);

/// Limits the power of the subject's GPUs (under_power_limit) and says so. A problem where they are
/// rated for less.
/// \pre the subject's cluster is read
void limit_power(double watts, Subject& subject, Diagnostics& problems);

}  // namespace shardwise
