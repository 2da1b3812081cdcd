#pragma once

#include "planner/lowering/operands/operand_writer.h"

namespace shardwise {

/// Lists the operands of all operations of a rank's program: of passes as PassOperands does, of
/// what data parallelism and the end of a step do here. The order is the kernels'
/// (executor/engine/program_binder.h): what becomes something before what it becomes.
void list_operands(OperandWriter& writer);

}  // namespace shardwise
