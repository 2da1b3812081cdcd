#pragma once

#include <string>
#include <vector>

#include "executor/recorder/rank_record.h"
#include "planner/spec/plan.h"

namespace shardwise::exec {

/// The step of median length of the ranks of this process as a Chrome trace, schema
/// "shardwise.trace/1" (docs/formats.md, "Traces"), with the names that a simulated one has.
std::string measured_trace(const Plan& plan, const std::vector<RankRecord>& ranks);

}  // namespace shardwise::exec
