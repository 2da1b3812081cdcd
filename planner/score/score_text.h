#pragma once

#include <string>

#include "planner/score/row.h"
#include "planner/score/score.h"

namespace shardwise {

/// The report for people: error by source, runs that ended for lack of memory, rows left out by
/// reason. \param rows  every row and every reason too
std::string to_text(const ScoreReport& report, bool rows, bool colour);

/// One row: how it was said in the planner's terms, what was assumed, and where the predicted bytes
/// and seconds go.
std::string explain_text(const Row& row, bool colour);

}  // namespace shardwise
