#pragma once

#include <stop_token>

#include "gui/models/layout_row.h"
#include "planner/spec/plan.h"
#include "planner/spec/report.h"

namespace shardwise::view {

/// Every row of the plan's question: its model, cluster, job and engine. \param reference  the
/// report of the plan's layout, for rates: layouts of one question do the same work in another time
Answer search_rows(const Plan& plan, const StepReport& reference, const std::stop_token& stop);

/// Fills the rates of a row from a report of the same question.
void fill_rates(LayoutRow& row, const StepReport& reference);

/// Whether memory fits: its upper bound, its point estimate alone, or not even that.
Fit fit_of(Bytes memory, Bytes upper, Bytes usable);

}  // namespace shardwise::view
