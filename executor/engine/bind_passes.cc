// Passes of layers.
#include <algorithm>

#include "executor/engine/program_binder.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

void ProgramBinder::issue_passes(Compute& to, DeviceStream& stream) {
  to_ = &to;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const OpRole role = program_.operations[i].role;
    const bool is_pass =
        role == OpRole::forward || role == OpRole::recompute || role == OpRole::backward;
    if (is_pass && !is_between_regions(program_, program_.operations[i])) kernels_[i].run(stream);
  }
  to_ = nullptr;
}

/// Those that mixed precision casts for a pass: each operand after the weights that it is cast
/// from.
void ProgramBinder::cast_weights(Operands operands, DeviceStream& stream) const {
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].part == OperandPart::cast_weights) {
      compute().cast(numbers(operands[i]), numbers(operands[i - 1]), stream);
    }
  }
}

/// A message that is handed is read before the stream is there.
ProgramBinder::Streams ProgramBinder::streams_of(Operands operands) {
  std::vector<const Operand*> found;
  for (const Operand& operand : operands) {
    if (operand.part == OperandPart::stream) found.push_back(&operand);
  }
  Streams streams;
  std::size_t own = 0;
  if (found.size() > 1 && found[0]->access == Access::input) streams.received = found[own++];
  if (own < found.size()) streams.own = found[own];
  if (own + 1 < found.size()) streams.sent = found[own + 1];
  return streams;
}

std::vector<const std::byte*> ProgramBinder::weights(Operands operands) const {
  std::vector<const std::byte*> tensors;
  for (const TensorView& tensor : all(operands, OperandPart::parameter))
    tensors.push_back(tensor.data);
  return tensors;
}

OpKernel ProgramBinder::forward(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const auto tables_of = std::ranges::find(operands, OperandPart::tables, &Operand::part);
  const bool fills = tables_of != operands.end() && tables_of->writes();
  const Streams streams = streams_of(operands);
  return [this, operands, fills, streams, region = number_in_pass(op),
          &layer = layer_of(op)](DeviceStream& stream) {
    if (fills) parts_.fill_tables(at(operands, OperandPart::tables), {compute(), stream});
    cast_weights(operands, stream);
    copy_stream(streams.received, streams.own, stream);
    const std::vector<const std::byte*> tensors = weights(operands);
    ForwardPass pass;
    pass.weights = tensors;
    if (streams.own != nullptr) pass.stream = numbers(*streams.own).data;
    pass.inputs = step_at<std::int64_t>(operands, OperandPart::inputs);
    pass.saved = at(operands, OperandPart::saved);
    pass.workspace = at(operands, OperandPart::layer_workspace);
    pass.tables = at(operands, OperandPart::tables);
    pass.region = region;
    layer.forward(pass, {compute(), stream});
    copy_stream(streams.own, streams.sent, stream);
  };
}

BackwardPass ProgramBinder::backward_pass(Operands operands) const {
  BackwardPass pass;
  const Streams streams = streams_of(operands);
  if (streams.own != nullptr) pass.stream = numbers(*streams.own).data;
  pass.saved = at(operands, OperandPart::saved);
  pass.workspace = at(operands, OperandPart::layer_workspace);
  pass.tables = at(operands, OperandPart::tables);
  const std::vector<TensorView> spaces = all(operands, OperandPart::layer_workspace);
  // What is gathered lies in the last one.
  if (!spaces.empty()) pass.gathered = spaces.back().data;
  return pass;
}

OpKernel ProgramBinder::recompute(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return
      [this, operands, region = number_in_pass(op), &layer = layer_of(op)](DeviceStream& stream) {
        cast_weights(operands, stream);
        const std::vector<const std::byte*> tensors = weights(operands);
        BackwardPass pass = backward_pass(operands);
        pass.weights = tensors;
        pass.region = region;
        layer.recompute(pass, {compute(), stream});
      };
}

OpKernel ProgramBinder::backward(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const Streams streams = streams_of(operands);
  return [this, operands, streams, region = number_in_pass(op),
          &layer = layer_of(op)](DeviceStream& stream) {
    for (const TensorView& fresh : all(operands, OperandPart::fresh_gradients)) {
      compute().clear(fresh, stream);
    }
    cast_weights(operands, stream);
    copy_stream(streams.received, streams.own, stream);
    const std::vector<const std::byte*> tensors = weights(operands);
    std::vector<std::byte*> gradients;
    for (const TensorView& tensor : all(operands, OperandPart::parameter_gradient)) {
      gradients.push_back(tensor.data);
    }
    BackwardPass pass = backward_pass(operands);
    pass.weights = tensors;
    pass.gradients = gradients;
    pass.region = region;
    pass.targets = step_at<std::int64_t>(operands, OperandPart::targets);
    pass.loss_scale = step_at<float>(operands, OperandPart::loss_scale);
    pass.loss = step_at<LossSum>(operands, OperandPart::loss);
    layer.backward(pass, {compute(), stream});
    // What lies beside a sum begins it, or joins those of earlier micro-batches.
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (operands[i].part != OperandPart::gradient_sum) continue;
      const TensorView sum = numbers(operands[i]);
      const TensorView made = numbers(operands[i - 1]);
      if (operands[i].access == Access::accumulate) {
        compute().accumulate(sum, made, stream);
      } else {
        compute().cast(sum, made, stream);
      }
    }
    copy_stream(streams.own, streams.sent, stream);
  };
}

/// Between a rank's piece of a tensor and the whole one, the first two operands. A message that
/// another stage sent becomes the piece before it is gathered. Where a sum ends the pass of a
/// stage, the message that leaves is copied from it.
OpKernel ProgramBinder::meet_piece(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const Operand& whole = operands[0];
  const Operand& own = operands[1];
  const Operand* message = nullptr;
  for (const Operand& operand : operands.subspan(2)) {
    if (operand.part == OperandPart::stream) message = &operand;
  }
  if (program_.communication(op)->kind == CollectiveKind::all_gather) {
    return [this, whole, own, message, group = group_of(op)](DeviceStream& stream) {
      if (message != nullptr) copy_stream(message, &own, stream);
      group->all_gather(numbers(own), numbers(whole), whole.piece, stream);
    };
  }
  const bool adds = own.access == Access::accumulate;
  return [this, whole, own, adds, message, group = group_of(op)](DeviceStream& stream) {
    group->reduce_scatter(numbers(whole), numbers(own), whole.piece, adds, stream);
    copy_stream(&own, message, stream);
  };
}

/// Between two regions of a pass: a tensor of the layer, in its place. Behind the last region of a
/// stage: the stream, which is copied to the message that leaves.
OpKernel ProgramBinder::meet(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const Operand& tensor = operands.front();
  if (tensor.access != Access::accumulate) return meet_piece(op);
  const Operand* const sent = operands.size() > 1 ? &operands[1] : nullptr;
  const CollectiveKind kind = program_.communication(op)->kind;
  const bool gathers = kind == CollectiveKind::all_gather;
  SHARDWISE_CHECK((gathers || kind == CollectiveKind::all_reduce) && gathers == (tensor.piece > 0),
                  name_of(program_, op));
  if (!gathers) {
    return [this, tensor, sent, group = group_of(op)](DeviceStream& stream) {
      group->all_reduce(numbers(tensor), stream);
      copy_stream(&tensor, sent, stream);
    };
  }
  return [this, tensor, group = group_of(op)](DeviceStream& stream) {
    const TensorView all = numbers(tensor);
    const Piece own = piece_of(tensor.count, tensor.piece, group->rank());
    group->all_gather(all.part(own.begin, own.count), all, tensor.piece, stream);
  };
}

}  // namespace shardwise::exec
