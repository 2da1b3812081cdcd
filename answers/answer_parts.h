#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "answers/plan_answer.h"
#include "planner/search/search.h"
#include "planner/spec/report/report.h"
#include "planner/spec/report/report_fields.h"

namespace shardwise::sim {

// Parts of an answer as tables and pictures need them.

/// Counts of all engines together; those that rules dropped by rule, in the rules' order.
SearchCounts counts_of_all(const PlanAnswer& answer);

/// The engines but the one of the first row: by the step of their best layout, then those without
/// one. \pre answer.best is not empty
std::vector<const EngineAnswer*> other_engines(const PlanAnswer& answer);

/// At most `most` of the rows, evenly thinned, both ends among them. All of them for most < 2.
std::vector<PlanRow> thinned(std::span<const PlanRow> rows, std::size_t most);

/// One part of a step in two reports.
struct TimeDifference {
  const TimePart* part = nullptr;
  Seconds first;
  Seconds second;

  Seconds more() const { return second - first; }
};
/// The parts in which two steps differ, what the second has most more of first. They sum to the
/// difference of the steps.
std::vector<TimeDifference> time_differences(const StepReport& first, const StepReport& second);

}  // namespace shardwise::sim
