#pragma once

#include "planner/lowering/operands/operand_writer.h"

namespace shardwise {

/// Lists them for a look at this rank's gradients before they are summed with others'.
void list_check_operands(OperandWriter& writer, OpId op);

/// Lists the operands of an operation after the last pass: what divides gradients by tokens, their
/// norm, the optimizer.
void list_step_operands(OperandWriter& writer, OpId op);

}  // namespace shardwise
