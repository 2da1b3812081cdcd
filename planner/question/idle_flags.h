#pragma once

#include <string>
#include <vector>

#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// The flags of a question without which the answer would be the same, memory and time to the last
/// digit, though they set something else than is taken without them, as they are typed:
/// "--recompute selective".
std::vector<std::string> idle_flags(const AskedJob& job, const AskedLayout& layout,
                                    const StepReport& answer);

/// Idle flags as an assumption that screens print: "no effect here: --recompute selective".
/// \returns none where every flag has an effect
std::vector<Assumption> idle_flags_assumption(const AskedJob& job, const AskedLayout& layout,
                                              const StepReport& answer);

}  // namespace shardwise
