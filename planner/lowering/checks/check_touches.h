#pragma once

#include <string>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Buffers that operations touch out of order, one line each: allocated, used and freed by
/// operations of which no stream and no dependency orders one after the one before.
/// \pre operations wait for operations issued before them
std::vector<std::string> check_touches(const StageProgram& stage);

}  // namespace shardwise
