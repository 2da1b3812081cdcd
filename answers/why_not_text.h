#pragma once

#include <string>

#include "planner/question/field_values.h"
#include "planner/search/advice/why_not.h"

namespace shardwise::sim {

/// Why the winner won over the layouts with these values: a line of why_not_words(), then reasons
/// or a table. \param colour  for a terminal
std::string why_not_text(const WhyNot& answer, const FieldValues& values, bool colour);

}  // namespace shardwise::sim
