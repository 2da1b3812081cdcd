#include "planner/lowering/operands/operand_writer.h"

#include <algorithm>

#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise {
namespace {

/// The operation of the first step that makes buffers which outlive it.
OpId maker_of_lasting(const StageProgram& program) {
  for (OpId op = 0; op < program.operations.size(); ++op) {
    for (const BufferId b : program.of(program.operations[op].allocates)) {
      if (program.buffers[b].outlives) return op;
    }
  }
  return kNone;
}

bool keeps_gradients(const StageProgram& program) {
  return std::ranges::any_of(program.buffers, [](const ProgramBuffer& buffer) {
    return buffer.resident && buffer.category == MemoryCategory::gradients;
  });
}

}  // namespace

OperandWriter::OperandWriter(const RunShape& run, StageProgram& program,
                             std::span<const PlacedOperand> placed)
    : run_(run),
      program_(program),
      types_(state_types(*run.context)),
      buffers_(program),
      states_(run.units->units.size()),
      lists_(program.operations.size()) {
  for (const PlacedOperand& each : placed) {
    placed_[{each.op, each.part, each.handed_on}] = each.buffer;
  }
  make_state();
}

void OperandWriter::make_state() {
  using enum MemoryCategory;
  // First, so that it begins where the rank's memory does, at a multiple of 256.
  kernel_workspace_ = buffers_.resident(library_workspace, kernel_workspace_bytes());
  const OpId moments_by = maker_of_lasting(program_);
  const bool keeps = keeps_gradients(program_);
  const auto gradient_bytes = [&](std::size_t u) {
    return room(u, placement().gradients) * bytes_of(types_.gradients);
  };
  for (std::size_t u = 0; u < states_.size(); ++u) {
    UnitBuffers& own = states_[u];
    const std::int64_t wide = room(u, placement().optimizer) * bytes_of(DType::fp32);
    own.weights =
        buffers_.resident(types_.weights_are_main ? MemoryCategory::main_weights : weights,
                          room(u, placement().parameters) * bytes_of(types_.weights));
    if (types_.main_weights) {
      own.main_weights =
          buffers_.resident(main_weights, room(u, placement().optimizer) * types_.main_bytes());
    }
    own.first_moments = buffers_.resident(optimizer_moments, wide, moments_by);
    own.second_moments = buffers_.resident(optimizer_moments, wide, moments_by);
    if (keeps) own.gradients = buffers_.resident(MemoryCategory::gradients, gradient_bytes(u));
  }
  make_step_block();
  if (keeps) return;
  for (std::size_t u = 0; u < states_.size(); ++u) {
    states_[u].gradients = buffers_.make(MemoryCategory::gradients, gradient_bytes(u));
  }
}

void OperandWriter::make_step_block() {
  const LoweringContext& context = *run_.context;
  step_block_ = shardwise::step_block(step_block_shape(context.layout(), context.num_microbatches,
                                                       context.job().sequence_length,
                                                       context.job().calculate_per_token_loss));
  step_buffer_ = buffers_.resident(MemoryCategory::working, step_block_.bytes);
}

Operand OperandWriter::of_step(OperandPart part, Access access, const StepRange& range) const {
  Operand operand;
  operand.part = part;
  operand.access = access;
  operand.dtype = DType::int8;
  operand.buffer = step_buffer_;
  operand.first = range.begin;
  operand.count = range.bytes;
  return operand;
}

std::int64_t OperandWriter::kernel_workspace_bytes() const {
  // Of the kernels that run, whichever the ledger prices.
  const Plan& plan = *run_.context->plan;
  const int capability = cuda_capability(plan.cluster.gpu);
  return capability > 0 ? gpu_workspace_bytes(plan.model, plan.job, plan.layout, capability) : 0;
}

void OperandWriter::add(OpId op, const Operand& operand) {
  if (operand.buffer == kNone) return;
  lists_[op].push_back(operand);
  buffers_.touch(operand.buffer, op);
}

BufferId OperandWriter::placed(OpId op, OperandPart part, std::int64_t bytes, bool handed_on) {
  const auto found = placed_.find({op, part, handed_on});
  if (found == placed_.end() || program_.buffers[found->second].bytes < bytes) return kNone;
  return buffers_.of_plan(found->second);
}

BufferId OperandWriter::placed_or_made(OpId op, OperandPart part, MemoryCategory category,
                                       std::int64_t bytes) {
  const BufferId there = placed(op, part, bytes);
  return there != kNone ? there : make(category, bytes, operation(op).layer);
}

Operand OperandWriter::weights(Access access, std::size_t number, Placement of) const {
  const ShardRange kept = held_of(unit(number), placement().parameters, run_.place);
  const ShardRange held = held_of(unit(number), of, run_.place);
  Operand operand =
      whole(OperandPart::weights, access, number, states_[number].weights, types_.weights);
  operand.first = held.begin - kept.begin;
  operand.count = held.count;
  return operand;
}

Operand OperandWriter::gradients(Access access, std::size_t number, const ShardRange& held) const {
  const ShardRange kept = held_of(unit(number), placement().gradients, run_.place);
  Operand operand =
      whole(OperandPart::gradients, access, number, states_[number].gradients, types_.gradients);
  operand.first = held.begin - kept.begin;
  operand.count = held.count;
  return operand;
}

Operand OperandWriter::gradients(Access access, std::size_t number, Placement of) const {
  return gradients(access, number, held_of(unit(number), of, run_.place));
}

Operand OperandWriter::reduced(Access access, std::size_t number) const {
  const bool whole = placement().gradients == Placement::replicate;
  return gradients(access, number, whole ? placement().optimizer : placement().gradients);
}

Operand OperandWriter::whole(OperandPart part, Access access, std::size_t number, BufferId buffer,
                             DType dtype) const {
  Operand operand;
  operand.part = part;
  operand.access = access;
  operand.dtype = dtype;
  operand.buffer = buffer;
  operand.unit = static_cast<std::int32_t>(number);
  operand.count = unit(number).elements;
  return operand;
}

void OperandWriter::finish() {
  buffers_.write(program_);
  program_.operands.clear();
  for (OpId op = 0; op < lists_.size(); ++op) {
    const auto begin = static_cast<std::uint32_t>(program_.operands.size());
    program_.operands.insert(program_.operands.end(), lists_[op].begin(), lists_[op].end());
    program_.operations[op].operands = {begin,
                                        static_cast<std::uint32_t>(program_.operands.size())};
  }
  program_.units = states_;
  program_.step_block = step_buffer_;
  program_.kernel_workspace = kernel_workspace_;
}

}  // namespace shardwise
