#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_engine.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Meaning of the wording of `recompute`.
struct RowRecompute {
  Recompute kind = Recompute::none;
  std::vector<std::string> operations;  // JobSpec::recompute_operations
  int interval = 1;                     // full: of every n-th layer
  bool stated = true;
};

/// Refuses wordings that leave open what is recomputed.
std::optional<RowRecompute> recompute_of(const Row& row, const RowEngine& engine, Notes& notes);

}  // namespace shardwise
