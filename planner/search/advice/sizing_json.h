#pragma once

#include <string>

#include "planner/search/advice/sizing.h"
#include "planner/spec/report/report_json.h"

namespace shardwise {

/// Offers to buy as JSON, schema "shardwise.sizing/1": docs/search.md.
std::string to_json(const Sizing& sizing, const SizingGoal& goal,
                    const ReportedParameters& model = {});

}  // namespace shardwise
