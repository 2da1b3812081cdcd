#pragma once

#include <vector>

#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// The program of the ranks of one stage. \param placed  takes the buffers that the schedule chose
/// for operands; null where nobody lists operands
StageProgram lower_stage(const LoweringContext& context, std::int32_t stage,
                         std::vector<PlacedOperand>* placed = nullptr);

}  // namespace shardwise
