#pragma once

#include <cstdint>
#include <string>

#include "planner/score/rows/row.h"
#include "planner/score/score.h"

namespace shardwise {

enum class ScoreScreen : std::uint8_t {
  first,  // at most 40 lines: the sources with the largest errors, the commonest reasons
  whole,  // every source and reason
  rows,   // every row and every row left out too
};

/// The report for people in 80 columns: error by source, runs that ended for lack of memory, rows
/// left out by reason.
std::string to_text(const ScoreReport& report, ScoreScreen screen, bool colour);

/// One row: how it was said in the planner's terms, what was assumed, and where the predicted bytes
/// and seconds go.
std::string explain_text(const Row& row, bool colour);

}  // namespace shardwise
