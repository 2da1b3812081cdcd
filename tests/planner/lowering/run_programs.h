#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "planner/lowering/operands/lower_to_run.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {

/// Rooms of a layer's kernels, each another number.
inline std::vector<LayerRoom> made_up_rooms(const Plan& plan) {
  return std::vector<LayerRoom>(plan.model.kinds.size(), LayerRoom{4096, 128, 256, 64});
}

/// Rank 0 … of the data-parallel axes alone, dp_shard innermost.
inline DataParallelPlace place_of(const Layout& layout, int rank) {
  DataParallelPlace place;
  place.shard_ranks = layout.dp_shard;
  place.replicas = layout.dp_replicate;
  place.shard_rank = rank % static_cast<int>(layout.dp_shard);
  place.replica = rank / static_cast<int>(layout.dp_shard);
  place.stage_ranks = layout.dp();
  place.stage_rank = rank;
  return place;
}

inline StepProgram run_program(const Plan& plan, StepKind step = StepKind::steady, int rank = 0,
                               bool adds_into_shard = true) {
  return lower_to_run(plan, step, place_of(plan.layout, rank), made_up_rooms(plan),
                      adds_into_shard);
}

inline ProgramOp& find(StageProgram& stage, const std::string& name) {
  for (ProgramOp& op : stage.operations) {
    if (name_of(stage, op) == name) return op;
  }
  ADD_FAILURE() << name;
  return stage.operations.front();
}

/// The operand of an operation with this name, the first of them.
inline Operand& operand_of(StageProgram& stage, const std::string& op, OperandPart part,
                           Access access) {
  const ProgramOp& each = find(stage, op);
  for (std::uint32_t i = each.operands.begin; i < each.operands.end; ++i) {
    if (stage.operands[i].part == part && stage.operands[i].access == access) {
      return stage.operands[i];
    }
  }
  ADD_FAILURE() << op << " has no " << name_of(part);
  return stage.operands.front();
}

/// A line an operand: "input weights 2 [0, 128) fp32 of main_weights".
inline std::string operands_of(StageProgram& stage, const std::string& name) {
  std::string text;
  for (const Operand& operand : stage.operands_of(find(stage, name))) {
    text +=
        fmt::format("{} {}{} [{}, {}) {} of {}{}\n", name_of(operand.access), name_of(operand.part),
                    operand.unit < 0 ? "" : fmt::format(" {}", operand.unit), operand.first,
                    operand.first + operand.count, name_of(operand.dtype),
                    name_of(stage.buffers[operand.buffer].category),
                    operand.piece == 0 ? "" : fmt::format(", by {}", operand.piece));
  }
  return text;
}

}  // namespace shardwise::test
