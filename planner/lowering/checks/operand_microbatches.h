#pragma once

#include <cstdint>
#include <string>

#include "planner/lowering/checks/written_bytes.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Micro-batches that the operands of one operation hold, taken in their order. What a pass works
/// on, keeps and makes is of its micro-batch alone. Gradients are sums: a pass or a reduction adds
/// the micro-batches that it read to those before them; a reduction takes a sum that ends with its
/// own micro-batch, and the end of the step one of all of them, each once.
class OperandMicrobatches {
 public:
  /// \param all  micro-batches of the step
  OperandMicrobatches(const ProgramOp& op, std::int32_t all);

  /// Whether the operand may read bytes that hold these.
  bool may_read(const Operand& operand, const Microbatches& held) const;
  /// Says in words what it may read.
  std::string wanted(const Operand& operand) const;
  /// Micro-batches that bytes hold after the operand. \param held  what they held when it read them
  Microbatches after(const Operand& operand, const Microbatches& held);

 private:
  bool joins(const Operand& operand) const;

  std::int32_t all_ = 0;
  std::int32_t own_ = -1;   // the operation's; -1: those of the step
  bool alone_ = false;      // its operands of gradients have nothing to do with one another
  Microbatches read_;       // gradients that it read
  std::int32_t unit_ = -1;  // and of which unit they are
};

/// Whether one layer writes and reads these bytes.
bool is_of_one_layer(OperandPart part);

/// "micro-batches 0 to 2".
std::string text_of(const Microbatches& held);

}  // namespace shardwise
