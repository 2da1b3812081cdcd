// Weights and gradients between shards and whole. The first operand becomes the second, a group's
// of its `piece` a rank.
#include "executor/engine/program_binder.h"

namespace shardwise::exec {

OpKernel ProgramBinder::nothing(const ProgramOp& /*op*/) {
  return [](DeviceStream& /*stream*/) {};
}

OpKernel ProgramBinder::copy(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands](DeviceStream& stream) {
    parts_.compute->cast(numbers(operands[1]), numbers(operands[0]), stream);
  };
}

OpKernel ProgramBinder::all_gather(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands, group = group_of(op)](DeviceStream& stream) {
    group->all_gather(numbers(operands[0]), numbers(operands[1]), operands[1].piece, stream);
  };
}

void ProgramBinder::check(const ProgramOp& op, const Operand& gradients,
                          DeviceStream& stream) const {
  if (!parts_.checks.any()) return;
  const Operands operands = program_.operands_of(op);
  const ConstTensorView all = numbers(gradients);
  std::byte* const sums = at(operands, OperandPart::own_squares);
  parts_.compute->squares({.tensors = {&all, 1}, .sums = sums, .beside_others = true}, stream);
  parts_.compute->check_gradients(
      {.rules = parts_.checks,
       .sums = sums,
       .bucket = {gradients.unit, static_cast<std::int32_t>(&op - program_.operations.data())},
       .state = step_at<GradientCheckState>(operands, OperandPart::gradient_check)},
      stream);
}

OpKernel ProgramBinder::reduce_scatter(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool own = op.role == OpRole::reduce;  // those of others are in what goes on from there
  return [this, &op, operands, own, group = group_of(op)](DeviceStream& stream) {
    if (own) check(op, operands[0], stream);
    const TensorView sent = numbers(operands[0]);
    const TensorView shard = numbers(operands[1]);
    const bool joins = operands[1].access == Access::accumulate;
    const std::int64_t piece = operands[0].piece;
    const bool alike = !joins && sent.dtype == shard.dtype;
    if (alike || group->traits().adds_into_shard) {
      group->reduce_scatter(sent, shard, piece, joins, stream);
      return;
    }
    // In the type that is sent, in its own place in what is sent, whose values nobody reads again.
    const Piece here = piece_of(static_cast<std::int64_t>(sent.count), piece, group->rank());
    const TensorView in_place = sent.part(here.begin, here.count);
    group->reduce_scatter(sent, in_place, piece, false, stream);
    if (joins) {
      parts_.compute->accumulate(shard, in_place, stream);
    } else {
      parts_.compute->cast(shard, in_place, stream);
    }
  };
}

/// In the type in which it travels: narrowed where it is, and widened again.
OpKernel ProgramBinder::all_reduce(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool own = op.role == OpRole::reduce;
  return [this, &op, operands, own, group = group_of(op)](DeviceStream& stream) {
    if (own) check(op, operands[0], stream);
    const TensorView kept = numbers(operands[0]);
    const TensorView sent = {kept.data, kept.count, parts_.state->types().reduced};
    parts_.compute->cast(sent, kept, stream);
    group->all_reduce(sent, stream);
    parts_.compute->cast(kept, sent, stream);
  };
}

OpKernel ProgramBinder::all_to_all(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, &op, operands, group = group_of(op)](DeviceStream& stream) {
    check(op, operands[0], stream);
    group->all_to_all(numbers(operands[0]), numbers(operands[1]), operands[1].piece, stream);
  };
}

/// What an all-to-all brought is summed in fp32, in the order of ranks, and rounded once, when it
/// becomes the shard or joins it.
OpKernel ProgramBinder::sum(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands](DeviceStream& stream) {
    const Operand& received = operands[0];
    parts_.compute->sum_ranks({.pieces = numbers(received),
                               .stride = received.piece,
                               .ranks = received.count / received.piece,
                               .sums = numbers(operands[1]),
                               .shard = numbers(operands[2]),
                               .joins = operands[2].access == Access::accumulate},
                              stream);
  };
}

}  // namespace shardwise::exec
