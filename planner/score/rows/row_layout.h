#pragma once

#include <optional>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_engine.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// How the row's job was spread over ranks; recompute is left at none (see row_job.h). Refuses rows
/// whose degrees do not multiply to their GPUs or do not cut their batch.
std::optional<Layout> layout_of(const Row& row, const RowEngine& engine, Notes& notes);

/// Sequences a step over all ranks. \pre layout_of(row, …) gave `layout`
std::int64_t global_batch_of(const Row& row, const Layout& layout);

}  // namespace shardwise
