#pragma once

#include <string>
#include <vector>

#include "executor/recorder/rank_record.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

/// The ranks' step of median length as a Chrome trace, schema "shardwise.trace/1" (docs/formats.md,
/// "Traces"), with the names that a simulated one has. The ranks of each clock begin at 0.
/// \param note  why times mean nothing; empty where they do
std::string measured_trace(const Plan& plan, const std::vector<RankRecord>& ranks,
                           const std::string& note = {});

}  // namespace shardwise::exec
