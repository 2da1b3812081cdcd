#pragma once

#include "planner/lowering/lowering_context.h"

namespace shardwise {

/// The program of the ranks of one stage.
StageProgram lower_stage(const LoweringContext& context, std::int32_t stage);

}  // namespace shardwise
