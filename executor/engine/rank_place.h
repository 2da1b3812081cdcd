#pragma once

#include <cstdint>

#include "planner/lowering/operands/unit_pieces.h"
#include "planner/spec/plan/layout.h"

namespace shardwise::exec {

/// Where a rank of a job stands in the axes of its layout that spread a stage's states.
DataParallelPlace place_of(const Layout& layout, std::int64_t rank);

/// The ranks that keep parts of a token table that the first and the last stage both have, those of
/// the first stage first. \pre cuts_table()
std::vector<std::int64_t> table_ranks(const Layout& layout, std::int64_t rank);
/// Its pipeline stage.
std::int32_t stage_of(const Layout& layout, std::int64_t rank);

}  // namespace shardwise::exec
