#pragma once

#include <string>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Lists what is wrong with the operands of a run's program, one line each:
/// every operand lies in a buffer, within its bytes, which exists from before its operation begins
/// until it is over; what is read was written, for that unit, in this step or, of states but
/// gradients, in the one before; it is of the micro-batch that the operation works on, of a sum of
/// gradients those up to it, at the end of the step all of them, each once; who reads bytes is
/// ordered after who wrote them, and who writes them after who read or wrote them, by streams and
/// dependencies. Within an operation operands are touched in their order. \pre operations wait for
/// operations issued before them, indices are of the program
std::vector<std::string> check_operands(const StageProgram& stage);

}  // namespace shardwise
