#pragma once

#include <cstddef>
#include <string>

#include "planner/search/sizing.h"

namespace shardwise::cli {

/// What to buy as people read it in 90 columns: the answer in one line, the offers cheapest first,
/// then what is too late and what does not fit. At most `top` offers.
std::string sizing_text(const Sizing& sizing, const SizingGoal& goal, std::size_t top, bool colour);

}  // namespace shardwise::cli
