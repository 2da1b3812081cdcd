// Weights and gradients between shards and whole. The first operand becomes the second, a group's
// of its `piece` a rank.
#include "executor/engine/program_binder.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

/// What a reduction summed becomes the shard, or is added to it. Nothing where the reduction did.
OpKernel ProgramBinder::accumulate(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands](DeviceStream& stream) {
    if (!operands.empty()) put(operands[1], numbers(operands[0]), stream);
  };
}

void ProgramBinder::put(const Operand& shard, const ConstTensorView& sum,
                        DeviceStream& stream) const {
  if (shard.access == Access::accumulate) {
    parts_.compute->accumulate(numbers(shard), sum, stream);
  } else {
    parts_.compute->cast(numbers(shard), sum, stream);
  }
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

/// What is sent and read again is summed in its place there, in the type that is sent.
OpKernel ProgramBinder::reduce_scatter(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool own = op.role == OpRole::reduce;  // those of others are in what goes on from there
  const bool in_place = operands[0].access == Access::accumulate;
  // Else the program's next operation does.
  const bool puts = operands.size() > 1 && operands[1].part == OperandPart::gradients;
  Communicator* const group = group_of(op);
  SHARDWISE_CHECK(
      in_place || group->traits().adds_into_shard ||
          (operands[1].access == Access::output && operands[0].dtype == operands[1].dtype),
      name_of(program_, op));
  return [this, &op, operands, own, in_place, puts, group](DeviceStream& stream) {
    if (own) check(op, operands[0], stream);
    const TensorView sent = numbers(operands[0]);
    const std::int64_t piece = operands[0].piece;
    if (!in_place) {
      const bool joins = operands[1].access == Access::accumulate;
      return group->reduce_scatter(sent, numbers(operands[1]), piece, joins, stream);
    }
    const Piece here = piece_of(static_cast<std::int64_t>(sent.count), piece, group->rank());
    const TensorView sum = sent.part(here.begin, here.count);
    group->reduce_scatter(sent, sum, piece, false, stream);
    if (puts) put(operands[1], sum, stream);
  };
}

/// In the type in which it travels, which has an operand where it is another.
OpKernel ProgramBinder::all_reduce(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool own = op.role == OpRole::reduce;
  const bool alike = operands.size() == 1 || operands[1].part != OperandPart::sent_gradients;
  return [this, &op, operands, own, alike, group = group_of(op)](DeviceStream& stream) {
    if (own) check(op, operands[0], stream);
    const TensorView kept = numbers(operands[0]);
    if (alike) return group->all_reduce(kept, stream);
    const TensorView sent = numbers(operands[1]);
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

/// Of the two that it is between the sender is rank 0.
OpKernel ProgramBinder::message(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool sends = op.stream == Stream::send;
  SHARDWISE_CHECK(operands.size() == 1, name_of(program_, op));
  return [this, operands, sends, pair = group_of(op)](DeviceStream& stream) {
    Message message;
    message.peer = sends ? 1 : 0;
    if (sends) {
      message.sent = numbers(operands[0]);
    } else {
      message.received = numbers(operands[0]);
    }
    pair->send_receive({&message, 1}, stream);
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
