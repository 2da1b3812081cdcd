#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/step_block.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/lowering/operands/run_buffers.h"
#include "planner/lowering/operands/state_types.h"
#include "planner/lowering/operands/state_units.h"

namespace shardwise {

/// Shape that the operands of a rank's program are listed from.
struct RunShape {
  const LoweringContext* context = nullptr;
  const StateUnits* units = nullptr;
  DataParallelPlace place;
  std::span<const LayerRoom> rooms;  // by kind
  bool adds_into_shard = true;       // lower_to_run()

  const ModelSpec& model() const { return context->plan->model; }
  const LayerSpec& kind_of(std::int32_t layer) const {
    return model().kinds[static_cast<std::size_t>(model().layers[static_cast<std::size_t>(layer)])];
  }
  const LayerRoom& room(std::int32_t layer) const {
    return rooms[static_cast<std::size_t>(model().layers[static_cast<std::size_t>(layer)])];
  }
};

/// Lists the operands of a rank's operations, and makes their buffers.
class OperandWriter {
 public:
  /// \param program  as lowered for the ledger; written by finish(). \param placed  what its
  /// schedule placed
  OperandWriter(const RunShape& run, StageProgram& program, std::span<const PlacedOperand> placed);

  const RunShape& run() const { return run_; }
  const StageProgram& program() const { return program_; }
  const ProgramOp& operation(OpId op) const { return program_.operations[op]; }
  const StateUnit& unit(std::size_t number) const { return run_.units->units[number]; }
  const StateTypes& types() const { return types_; }
  const StatePlacement& placement() const { return run_.context->placement; }
  /// Whether kernels add a micro-batch's gradients to the sum of those before.
  bool adds_to_sums() const { return shardwise::adds_to_sums(run_.context->memory_rules); }

  /// Nothing where there is no buffer. One of no elements stands for a rank whose piece is empty.
  void add(OpId op, const Operand& operand);

  BufferId make(MemoryCategory category, std::int64_t bytes, std::int32_t layer = -1,
                std::int32_t microbatch = -1) {
    return buffers_.make(category, bytes, layer, microbatch);
  }
  /// The schedule's buffer for an operand if it has room for so many bytes; else kNone.
  BufferId placed(OpId op, OperandPart part, std::int64_t bytes, bool handed_on = false);
  /// Buffer already placed, or one of its own.
  BufferId placed_or_made(OpId op, OperandPart part, MemoryCategory category, std::int64_t bytes);
  void touch(BufferId buffer, OpId op) { buffers_.touch(buffer, op); }

  /// Weights of this rank's state: what `placement` gives it of a unit.
  Operand weights(Access access, std::size_t unit, Placement placement) const;
  Operand gradients(Access access, std::size_t unit, Placement placement) const;
  Operand gradients(Access access, std::size_t unit, const ShardRange& held) const;
  /// Part it keeps of the sum over the inner axis.
  Operand reduced(Access access, std::size_t unit) const;
  /// All of a unit, in a buffer that begins with it.
  Operand whole(OperandPart part, Access access, std::size_t unit, BufferId buffer,
                DType dtype) const;
  /// Buffer that kernels of passes work in; kNone on CPUs.
  BufferId kernel_workspace() const { return kernel_workspace_; }
  std::int64_t kernel_workspace_bytes() const;
  /// Operand in the block that host and device share in a step.
  Operand of_step(OperandPart part, Access access, const StepRange& range) const;
  const StepBlock& step_block() const { return step_block_; }
  const UnitBuffers& state(std::size_t unit) const { return states_[unit]; }
  std::int64_t room(std::size_t number, Placement placement) const {
    return room_of(unit(number), placement);
  }

  void finish();

 private:
  void make_state();
  void make_step_block();

  const RunShape& run_;
  StageProgram& program_;
  StateTypes types_;
  RunBuffers buffers_;
  BufferId kernel_workspace_ = kNone;
  std::vector<UnitBuffers> states_;
  StepBlock step_block_;
  BufferId step_buffer_ = kNone;
  std::map<std::tuple<OpId, OperandPart, bool>, BufferId> placed_;  // PlacedOperand
  std::vector<std::vector<Operand>> lists_;                         // by operation
};

}  // namespace shardwise
