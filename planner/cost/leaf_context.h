#pragma once

#include <cstdint>

#include "planner/cost/collective_table.h"
#include "planner/cost/time_rules.h"
#include "planner/spec/layout.h"

namespace shardwise {

/// What a layout adds to its stages: everything a leaf of the search varies.
struct LeafContext {
  const TimeRules* rules = nullptr;
  const Layout* layout = nullptr;
  const DataParallelTables* groups = nullptr;
  std::int64_t num_microbatches = 1;
};

}  // namespace shardwise
