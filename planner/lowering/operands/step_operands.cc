#include "planner/lowering/operands/step_operands.h"

#include <algorithm>

#include "planner/cost/layer/head_norm.h"
#include "planner/lowering/finish_step.h"
#include "planner/lowering/operands/table_shards.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

const ParameterSpec& parameter_of(const ModelSpec& model, const UnitTensor& tensor) {
  const int kind = model.layers[static_cast<std::size_t>(tensor.copy ? 0 : tensor.layer)];
  return model.kinds[static_cast<std::size_t>(kind)]
      .parameters[static_cast<std::size_t>(tensor.parameter)];
}

/// By unit: its gradients, an fp32 copy of them, weights, their fp32 copy or remainders, moments.
void list_optimizer(OperandWriter& writer, OpId op) {
  using enum OperandPart;
  const StateTypes& types = writer.types();
  const Placement updated = writer.placement().optimizer;
  const std::size_t units = writer.run().units->units.size();
  std::int64_t all = 0;
  for (std::size_t u = 0; u < units; ++u) all += writer.room(u, updated);
  const BufferId casts = writer.make(MemoryCategory::main_gradients,
                                     types.casts_gradients ? all * bytes_of(DType::fp32) : 0);
  std::int64_t next = 0;
  for (std::size_t u = 0; u < units; ++u) {
    const UnitBuffers& own = writer.state(u);
    const Operand gradient = writer.gradients(Access::input, u, updated);
    const auto wide = [&](OperandPart part, Access access, BufferId buffer) {
      Operand operand = writer.whole(part, access, u, buffer, DType::fp32);
      operand.count = gradient.count;
      return operand;
    };
    writer.add(op, gradient);
    Operand cast = wide(main_gradients, Access::workspace, casts);
    cast.first = next;
    writer.add(op, cast);
    next += writer.room(u, updated);
    const bool copied = types.main_weights && !types.remainders;
    writer.add(op, writer.weights(copied ? Access::output : Access::accumulate, u, updated));
    if (types.remainders) {
      Operand halves = wide(weight_remainders, Access::accumulate, own.main_weights);
      halves.dtype = DType::int8;
      halves.count *= types.main_bytes();
      writer.add(op, halves);
    } else {
      writer.add(op, wide(main_weights, Access::accumulate, own.main_weights));
    }
    writer.add(op, wide(first_moments, Access::accumulate, own.first_moments));
    writer.add(op, wide(second_moments, Access::accumulate, own.second_moments));
  }
}

void list_norm(OperandWriter& writer, OpId op) {
  using enum OperandPart;
  const StepBlock& block = writer.step_block();
  writer.add(op, writer.of_step(own_squares, Access::output, block.own_squares));
  if (block.all_squares.bytes > 0) {
    writer.add(op, writer.of_step(all_squares, Access::output, block.all_squares));
  }
  writer.add(op, writer.of_step(gradient_norm, Access::output, block.gradient_norm));
  writer.add(op, writer.of_step(adam_step, Access::accumulate, block.adam_step));
}

/// Per-token loss: the tokens of all ranks, and gradients divided by them.
void list_tokens(OperandWriter& writer, OpId op, bool counts) {
  using enum OperandPart;
  const StepBlock& block = writer.step_block();
  const bool alone = block.all_tokens.bytes == 0;
  if (counts || alone) {
    writer.add(op, writer.of_step(own_tokens, Access::input, block.own_tokens));
  }
  if (!alone) {
    writer.add(
        op, writer.of_step(all_tokens, counts ? Access::output : Access::input, block.all_tokens));
  }
  if (counts) return;
  writer.add(op, writer.of_step(token_factor, Access::output, block.token_factor));
}

/// The table of embedding and head that are on two stages. Where ranks have parts of its gradients,
/// what the other stage made of a rank's part arrives beside it.
void list_table(OperandWriter& writer, OpId op) {
  const StateUnits& units = *writer.run().units;
  const TensorPlace place = units.table();
  const UnitTensor& tensor = units.tensor(place);
  SHARDWISE_CHECK(writer.types().gradients == writer.types().reduced, tensor.name);
  if (!cuts_table(writer.run().context->layout())) {
    return writer.add(
        op, writer.gradients(Access::accumulate, place.unit, {tensor.begin, tensor.elements}));
  }
  const DType dtype = writer.types().gradients;
  const ShardRange own = table_part(units, writer.placement().optimizer, writer.run().place);
  writer.add(
      op, writer.gradients(Access::accumulate, place.unit, {tensor.begin + own.begin, own.count}));
  Operand received = writer.whole(
      OperandPart::received_gradients, Access::workspace, place.unit,
      writer.make(MemoryCategory::gradient_staging, own.count * bytes_of(dtype)), dtype);
  received.count = own.count;
  writer.add(op, received);
}

/// What a rank updates of tensors whose gradients ranks of tensor parallelism add up, as each has
/// what its own query heads make. These are the norms of queries and keys, and heads of keys and
/// values that several ranks have. Under sequence parallelism also whatever all ranks have whole.
void list_shared(OperandWriter& writer, OpId op, bool heads) {
  const StateUnits& units = *writer.run().units;
  const bool spread = writer.run().context->layout().sequence_parallel;
  for (std::size_t u = 0; u < units.units.size(); ++u) {
    const ShardRange held =
        held_of(writer.unit(u), writer.placement().optimizer, writer.run().place);
    for (const UnitTensor& tensor : writer.unit(u).tensors) {
      const ParameterSpec& parameter = parameter_of(writer.run().model(), tensor);
      const bool norms = spread ? parameter.tp_dim < 0 : is_head_norm(parameter);
      const bool listed = heads ? tensor.cut.copies > 1 : norms;
      if (!listed) continue;
      const std::int64_t begin = std::max(held.begin, tensor.begin);
      const std::int64_t end = std::min(held.begin + held.count, tensor.begin + tensor.elements);
      if (begin >= end) continue;
      writer.add(op, writer.gradients(Access::accumulate, u, {begin, end - begin}));
    }
  }
}

/// The norm's part of a unit: over all ranks every element once. What several ranks of tensor
/// parallelism have is the first one's.
void list_counted(OperandWriter& writer, OpId op, std::size_t u, const ShardRange& own) {
  if (writer.run().place.tp_rank == 0)
    return writer.add(op, writer.gradients(Access::input, u, own));
  for (const UnitTensor& tensor : writer.unit(u).tensors) {
    const std::int64_t begin = std::max(own.begin, tensor.begin);
    const std::int64_t end = std::min(own.begin + own.count, tensor.begin + tensor.elements);
    if (!tensor.cut.leads(writer.run().place.tp_rank) || begin >= end) continue;
    writer.add(op, writer.gradients(Access::input, u, {begin, end - begin}));
  }
}

/// Where a unit's copy of another stage's table begins, its last tensor: that stage stands for it.
std::int64_t begin_of_copy(const StateUnit& unit) {
  return unit.tensors.back().copy ? unit.tensors.back().begin : unit.elements;
}

bool has_norm(const StageProgram& program) {
  return std::ranges::any_of(program.operations,
                             [](const ProgramOp& op) { return op.role == OpRole::gradient_norm; });
}

}  // namespace

void list_check_operands(OperandWriter& writer, OpId op) {
  using enum OperandPart;
  const StepBlock& block = writer.step_block();
  writer.add(op, writer.of_step(own_squares, Access::workspace, block.own_squares));
  writer.add(op, writer.of_step(gradient_check, Access::accumulate, block.gradient_check));
}

void list_step_operands(OperandWriter& writer, OpId op) {
  using enum OperandPart;
  const ProgramOp& each = writer.operation(op);
  if (each.role == OpRole::optimizer) {
    list_optimizer(writer, op);
    // Where nothing was reduced nobody has looked at them, or taken the norm.
    if (writer.run().place.shard_ranks == 1) list_check_operands(writer, op);
    if (!has_norm(writer.program())) return list_norm(writer, op);
    return writer.add(op, writer.of_step(adam_step, Access::input, writer.step_block().adam_step));
  }
  if (each.role == OpRole::gradient_norm) list_norm(writer, op);
  if (each.role == OpRole::finalize && each.part == FinalizePart::kTiedEmbedding) {
    return list_table(writer, op);
  }
  if (each.role == OpRole::finalize && each.part == FinalizePart::kTokensFromLastStage) {
    const bool last = writer.program().stage + 1 == writer.run().context->layout().pp;
    return writer.add(op, writer.of_step(own_tokens, last ? Access::input : Access::output,
                                         writer.step_block().own_tokens));
  }
  const bool heads = each.part == FinalizePart::kCopiedHeads;
  if (each.role == OpRole::finalize && (heads || each.part == FinalizePart::kNorms)) {
    return list_shared(writer, op, heads);
  }
  if (each.role == OpRole::finalize) {
    const bool counts = each.part == FinalizePart::kTokens;
    if (!counts && each.part != FinalizePart::kScale) return;
    list_tokens(writer, op, counts);
    if (counts) return;
  }
  const Placement updated = writer.placement().optimizer;
  for (std::size_t u = 0; u < writer.run().units->units.size(); ++u) {
    if (each.role == OpRole::finalize) {
      writer.add(op, writer.gradients(Access::accumulate, u, updated));
    } else {  // the norm: over all ranks every element once
      ShardRange own = stands_for(writer.unit(u), updated, writer.run().place);
      const std::int64_t end = begin_of_copy(writer.unit(u));
      own.count = std::max<std::int64_t>(0, std::min(own.count, end - own.begin));
      list_counted(writer, op, u, own);
    }
  }
}

}  // namespace shardwise
