#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/lowering/operands/gradient_flow.h"
#include "planner/lowering/operands/operand_writer.h"

namespace shardwise {

/// A stream in the buffer of a message that an operation receives or sends; in no buffer where it
/// has no such message.
Operand message_of(OperandWriter& writer, OpId op, Access access, bool handed_on);

/// Lists what the passes of layers read and write, in the order in which an operation does: tables;
/// weights that it casts, each beside what they become; parameters; gradients that it clears, and
/// sums that it adds to; gradients of the parameters; the stream, what is saved, the workspace;
/// tokens and loss; gradients of this micro-batch, each beside the sum that it joins. A stream that
/// another stage sent comes before the one that it becomes (Access::input), one to be sent after
/// it.
class PassOperands {
 public:
  PassOperands(OperandWriter& writer, const GradientFlow& gradients);

  void list(OpId op);
  /// Where a unit's weights are whole from now on. kNone: where the rank keeps them.
  void gathered(std::size_t unit, BufferId buffer) { gathered_[unit] = buffer; }
  BufferId gathered(std::size_t unit) const { return gathered_[unit]; }

 private:
  void tables(OpId op);
  void parameters(OpId op, const std::vector<TensorPlace>& places);
  void gradients(OpId op, const std::vector<TensorPlace>& places);
  void stream(OpId op);
  void room(OpId op);
  void met(OpId op);
  bool works_on_stream(OpId op) const;
  bool is_last(OpId op, bool of_regions) const;
  bool workspace(OpId op);
  std::int64_t workspace_bytes(OpId op) const;
  BufferId met_buffer(OpId op, OperandPart part, bool apart = false) const;
  void met_piece(OpId op, const MetTensor& tensor);
  void begin_stream(OpId op, std::int64_t bytes);
  void step(OpId op);
  void sums(OpId op);
  BufferId weights_of(OpId op, std::size_t unit,
                      std::vector<std::pair<std::size_t, BufferId>>& casts);

  OperandWriter& writer_;
  const GradientFlow& flow_;
  std::vector<BufferId> gathered_;  // by unit
  BufferId tables_ = kNone;
  bool filled_ = false;                                        // the tables
  std::map<std::pair<std::int32_t, bool>, BufferId> streams_;  // by micro-batch, forward or not
  std::vector<std::vector<BufferId>> saved_;                   // by layer and micro-batch
  BufferId recomputed_ = kNone;                                // what the next backward pass reads
  BufferId space_ = kNone;                                     // of the pass that runs
  BufferId gathered_space_ = kNone;                            // beside it
  bool begins_ = false;                                        // that pass, with this operation
  std::tuple<OpRole, std::int32_t, std::int32_t> pass_ = {OpRole::optimizer, -1, -1};
};

}  // namespace shardwise
