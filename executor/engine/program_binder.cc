#include "executor/engine/program_binder.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/storage/bad_input.h"
#include "planner/lowering/checks/check_program.h"
#include "planner/lowering/finish_step.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

ProgramBinder::Maker ProgramBinder::maker_of(const StageProgram& program, const ProgramOp& op) {
  const OpCost& cost = program.costs[static_cast<std::size_t>(op.cost)];
  const CollectiveWork* const work = program.communication(op);
  // A whole pass, or with operands a region of one.
  const bool lists = op.operands.end > op.operands.begin;
  const bool whole_layer = !cost.layers.empty() || (lists && work == nullptr);
  if (lists && is_between_regions(program, op)) return &ProgramBinder::meet;
  switch (op.role) {
    case OpRole::forward:
      return whole_layer ? &ProgramBinder::forward : nullptr;
    case OpRole::recompute:
      return whole_layer ? &ProgramBinder::recompute : nullptr;
    case OpRole::backward:
      return whole_layer ? &ProgramBinder::backward : nullptr;
    case OpRole::cast:
    case OpRole::copy_out:
    case OpRole::reshard:
    case OpRole::copy_in:
      return &ProgramBinder::copy;
    case OpRole::gather:
    case OpRole::gather_outer:
    case OpRole::gather_updated:
      return &ProgramBinder::all_gather;
    case OpRole::reduce:
    case OpRole::reduce_outer:
      if (work == nullptr) return nullptr;
      if (work->kind == CollectiveKind::reduce_scatter) return &ProgramBinder::reduce_scatter;
      if (work->kind == CollectiveKind::all_reduce) return &ProgramBinder::all_reduce;
      if (work->kind == CollectiveKind::all_to_all && op.role == OpRole::reduce) {
        return &ProgramBinder::all_to_all;
      }
      return nullptr;
    case OpRole::sum:
      return &ProgramBinder::sum;
    case OpRole::accumulate:
      return &ProgramBinder::accumulate;
    case OpRole::finalize:
      if (op.part == FinalizePart::kTokensFromLastStage) return &ProgramBinder::hand_on_tokens;
      if (op.part == FinalizePart::kTokens) return &ProgramBinder::count_tokens;
      if (op.part == FinalizePart::kScale) return &ProgramBinder::scale_gradients;
      if (op.part == FinalizePart::kTiedEmbedding) return &ProgramBinder::sum_table;
      if (op.part == FinalizePart::kNorms || op.part == FinalizePart::kCopiedHeads) {
        return &ProgramBinder::sum_shared;
      }
      return nullptr;
    case OpRole::send_forward:
    case OpRole::receive_forward:
    case OpRole::send_backward:
    case OpRole::receive_backward:
      return &ProgramBinder::message;
    case OpRole::gradient_norm:
      return &ProgramBinder::gradient_norm;
    case OpRole::optimizer:
      return &ProgramBinder::optimizer;
    default:
      return nullptr;
  }
}

bool has_kernel(const StageProgram& program, const ProgramOp& op) {
  return ProgramBinder::maker_of(program, op) != nullptr;
}

ProgramBinder::ProgramBinder(RankParts& parts, const StageProgram& program, std::size_t number)
    : parts_(parts), program_(program), number_(number), items_(memory_items(program)) {
  require_sound(program);
  for (const ProgramOp& op : program.operations) {
    const Maker maker = maker_of(program, op);
    SHARDWISE_CHECK(maker != nullptr, name_of(program, op));
    check_pieces(op);
    kernels_.push_back((this->*maker)(op));
  }
}

void ProgramBinder::check_pieces(const ProgramOp& op) const {
  for (const Operand& operand : program_.operands_of(op)) {
    if (operand.piece == 0 || program_.communication(op) == nullptr) continue;
    const Communicator& group = *group_of(op);
    if (group.traits().ragged_shards || operand.count == operand.piece * group.size()) continue;
    throw BadInput(fmt::format(
        "/cluster: {} moves {} elements to {} ranks by {}, and collectives of this device take "
        "equal pieces: a plan for a cluster of GPUs has them",
        name_of(program_, op), operand.count, group.size(), operand.piece));
  }
}

std::span<std::byte> ProgramBinder::kernel_workspace() const {
  const BufferId block = program_.kernel_workspace;
  if (block == kNoBuffer) return parts_.arena->memory().first(0);
  return {parts_.arena->at(number_, block),
          static_cast<std::size_t>(program_.buffers[block].bytes)};
}

const Layer& ProgramBinder::layer_of(const ProgramOp& op) const {
  const int kind = parts_.context->plan->model.layers[static_cast<std::size_t>(op.layer)];
  return *parts_.layers[static_cast<std::size_t>(kind)];
}

std::vector<TensorView> ProgramBinder::all(Operands operands, OperandPart part) const {
  std::vector<TensorView> found;
  for (const Operand& operand : operands) {
    if (operand.part == part) found.push_back(numbers(operand));
  }
  return found;
}

std::byte* ProgramBinder::at(Operands operands, OperandPart part) const {
  const auto found = std::ranges::find(operands, part, &Operand::part);
  return found == operands.end() ? nullptr : numbers(*found).data;
}

}  // namespace shardwise::exec
