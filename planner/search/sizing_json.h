#pragma once

#include <string>

#include "planner/search/sizing.h"

namespace shardwise {

/// What to buy as JSON, schema "shardwise.sizing/1": docs/search.md.
std::string to_json(const Sizing& sizing, const SizingGoal& goal);

}  // namespace shardwise
