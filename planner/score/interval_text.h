#pragma once

#include <string>

#include "planner/estimate/interval_table.h"

namespace shardwise {

/// Tables for people in 80 columns: coverage by source and overall, intervals with their rows.
std::string to_text(const IntervalTable& table, bool colour);

}  // namespace shardwise
