#pragma once

#include <string>
#include <vector>

#include "answers/plan_columns.h"

namespace shardwise::sim {

/// Data report.js sorts and filters by, as an element of JSON: the names of columns and traits, the
/// words of problems, and every column's value of these rows, in the order of the table.
std::string layouts_element(const std::vector<PricedLayout>& rows);

}  // namespace shardwise::sim
