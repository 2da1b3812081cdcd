#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/program_binder.h"
#include "executor/engine/step_scalars.h"
#include "executor/engine/trainer.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec::test {

/// One rank with a bound program and memory of its own, to run its operations one by one.
class BoundRank {
 public:
  /// \param plan  outlives this
  BoundRank(const Plan& plan, World& world, const LayerKernels& kernels,
            StepKind step = StepKind::steady);

  const StageProgram& program() const { return program_.stages.front(); }
  const ProgramOp& op(const std::string& name) const;
  /// The operand of that name of an operation, the first of them.
  const Operand& operand(const std::string& op, OperandPart part) const;
  TensorView numbers(const Operand& operand) const;
  void run(const ProgramOp& op);
  void run(const std::string& name) { run(op(name)); }

  /// All of the rank's memory, and its copy.
  std::span<std::byte> memory() const;
  RankParts& parts() { return parts_; }
  std::int64_t offset_of_step() const { return arena_.layout(0).offsets[program().step_block]; }
  std::int64_t offset_of(const Operand& operand) const;

 private:
  LoweringContext context_;
  StateUnits units_;
  StepScalars step_;
  CpuDevice device_;
  Arena arena_;
  RankParts parts_;
  StepProgram program_;
  std::unique_ptr<ProgramBinder> binder_;
};

}  // namespace shardwise::exec::test
