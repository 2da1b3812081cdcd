#include "planner/lowering/operands/pass_operands.h"

#include <algorithm>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// What the kernels lay out themselves: bytes.
Operand bytes_in(OperandPart part, Access access, BufferId buffer, std::int64_t bytes) {
  Operand operand;
  operand.part = part;
  operand.access = access;
  operand.dtype = DType::int8;
  operand.buffer = buffer;
  operand.count = bytes;
  return operand;
}

/// The embedding begins the stream and the head ends it; backward the other way round.
Access stream_access(LayerRole layer, bool forward) {
  if (layer == LayerRole::embedding) return forward ? Access::output : Access::input;
  if (layer == LayerRole::head) return forward ? Access::input : Access::output;
  return Access::accumulate;
}

/// Of what the stage's layers share.
std::int64_t table_bytes(const OperandWriter& writer) {
  std::int64_t bytes = 0;
  const auto stage = static_cast<std::size_t>(writer.program().stage);
  for (const StageRun& run : writer.run().context->stages[stage].runs) {
    bytes = std::max(bytes, writer.run().rooms[static_cast<std::size_t>(run.kind)].tables);
  }
  return bytes;
}

}  // namespace

Operand message_of(OperandWriter& writer, OpId op, Access access, bool handed_on) {
  const LoweringContext& context = *writer.run().context;
  const std::int64_t tokens = context.layout().micro_batch_size * context.job().sequence_length;
  Operand operand;
  operand.part = OperandPart::stream;
  operand.access = access;
  operand.dtype = writer.types().compute;
  operand.count = tokens * writer.run().model().hidden_size;
  operand.buffer =
      writer.placed(op, operand.part, operand.count * bytes_of(operand.dtype), handed_on);
  return operand;
}

PassOperands::PassOperands(OperandWriter& writer, const GradientFlow& gradients)
    : writer_(writer),
      flow_(gradients),
      gathered_(writer.run().units->units.size(), kNone),
      saved_(writer.run().model().layers.size(),
             std::vector<BufferId>(static_cast<std::size_t>(writer.run().context->num_microbatches),
                                   kNone)) {
  tables_ = writer.make(MemoryCategory::activations, table_bytes(writer));
}

void PassOperands::list(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  if (is_between_regions(writer_.program(), each)) return met(op);
  const std::vector<TensorPlace> places =
      parameters_of(writer_.run().model(), *writer_.run().units, each.layer);
  tables(op);
  parameters(op, places);
  if (each.role == OpRole::backward) gradients(op, places);
  if (works_on_stream(op)) stream(op);
  room(op);
  step(op);
  if (each.role == OpRole::backward) sums(op);
}

/// Whether no other region of its pass follows.
bool PassOperands::is_last_region(OpId op) const {
  const ProgramOp& each = writer_.operation(op);
  for (OpId next = op + 1; next < writer_.program().operations.size(); ++next) {
    const ProgramOp& other = writer_.operation(next);
    if (is_between_regions(writer_.program(), other)) continue;
    const bool pass = other.role == OpRole::forward || other.role == OpRole::recompute ||
                      other.role == OpRole::backward;
    if (!pass) continue;
    return other.role != each.role || other.layer != each.layer ||
           other.microbatch != each.microbatch;
  }
  return true;
}

/// A recompute works on what was kept, and a head's backward pass makes the stream's gradient in
/// the end, from what was kept of the stream.
bool PassOperands::works_on_stream(OpId op) const {
  const ProgramOp& each = writer_.operation(op);
  if (each.role == OpRole::recompute) return false;
  const bool head = writer_.run().kind_of(each.layer).role == LayerRole::head;
  return !head || each.role == OpRole::forward || is_last_region(op);
}

/// The tensor of a collective between two regions. One that ends a stage's pass leaves the stream
/// in the buffer of the message too.
void PassOperands::met(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const std::vector<MetTensor>& tensors = writer_.run().room(each.layer).met(each.role);
  const std::size_t number = number_in_pass(each);
  SHARDWISE_CHECK(number < tensors.size(), name_of(writer_.program(), each));
  const MetTensor& tensor = tensors[number];
  Operand operand;
  operand.part = tensor.part;
  operand.access = Access::accumulate;
  operand.dtype = tensor.dtype;
  operand.first = tensor.first;
  operand.count = tensor.count;
  operand.piece = tensor.piece;
  const auto mb = static_cast<std::size_t>(each.microbatch);
  switch (tensor.part) {
    case OperandPart::stream:
      operand.buffer = streams_.at({each.microbatch, each.role == OpRole::forward});
      break;
    case OperandPart::saved:
      operand.buffer = saved_[static_cast<std::size_t>(each.layer)][mb];
      break;
    default:
      operand.buffer = space_;
      break;
  }
  SHARDWISE_CHECK(operand.buffer != kNone, name_of(writer_.program(), each));
  writer_.add(op, operand);
  writer_.add(op, message_of(writer_, op, Access::output, true));
}

/// What the host hands an embedding and a head, and what the head hands back.
void PassOperands::step(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const LayerRole layer = writer_.run().kind_of(each.layer).role;
  const StepBlock& block = writer_.step_block();
  const auto add = [&](OperandPart part, Access access, const StepRange& all) {
    const std::int64_t parts = writer_.run().context->num_microbatches;
    writer_.add(op, writer_.of_step(part, access, all.part(each.microbatch, parts)));
  };
  if (layer == LayerRole::embedding && each.role == OpRole::forward) {
    add(OperandPart::inputs, Access::input, block.inputs);
  }
  if (layer != LayerRole::head || each.role != OpRole::backward) return;
  add(OperandPart::targets, Access::input, block.targets);
  add(OperandPart::loss_scale, Access::input, block.loss_scales);
  add(OperandPart::loss, Access::accumulate, block.losses);
}

void PassOperands::tables(OpId op) {
  const bool fills = !std::exchange(filled_, true);
  writer_.add(op, bytes_in(OperandPart::tables, fills ? Access::output : Access::input, tables_,
                           table_bytes(writer_)));
}

/// Mixed precision that keeps whole weights in fp32 casts them for the pass.
BufferId PassOperands::weights_of(OpId op, std::size_t unit,
                                  std::vector<std::pair<std::size_t, BufferId>>& casts) {
  if (gathered_[unit] != kNone) return gathered_[unit];
  const StateTypes& types = writer_.types();
  if (types.weights == types.compute) return writer_.state(unit).weights;
  const auto made = std::ranges::find(casts, unit, &std::pair<std::size_t, BufferId>::first);
  if (made != casts.end()) return made->second;
  const ProgramOp& each = writer_.operation(op);
  const BufferId cast = writer_.make(MemoryCategory::gathered_weights,
                                     writer_.unit(unit).elements * bytes_of(types.compute),
                                     each.layer, each.microbatch);
  casts.emplace_back(unit, cast);
  writer_.add(op, writer_.weights(Access::input, unit, writer_.placement().parameters));
  writer_.add(op,
              writer_.whole(OperandPart::cast_weights, Access::output, unit, cast, types.compute));
  return cast;
}

void PassOperands::parameters(OpId op, const std::vector<TensorPlace>& places) {
  std::vector<std::pair<std::size_t, BufferId>> casts;
  std::vector<Operand> tensors;
  for (const TensorPlace& place : places) {
    const UnitTensor& tensor = writer_.run().units->tensor(place);
    Operand operand = writer_.whole(OperandPart::parameter, Access::input, place.unit,
                                    weights_of(op, place.unit, casts), writer_.types().compute);
    operand.first = tensor.begin;
    operand.count = tensor.elements;
    tensors.push_back(operand);
  }
  for (const Operand& tensor : tensors) writer_.add(op, tensor);
}

void PassOperands::gradients(OpId op, const std::vector<TensorPlace>& places) {
  const std::vector<GradientTarget>& targets = flow_.of(op);
  for (const GradientTarget& target : targets) {
    if (!target.begins) continue;
    Operand whole = target.made;
    whole.part = target.joins ? OperandPart::joined_gradients : OperandPart::fresh_gradients;
    whole.access = target.joins ? Access::accumulate : Access::output;
    writer_.add(op, whole);
  }
  for (const TensorPlace& place : places) {
    const UnitTensor& tensor = writer_.run().units->tensor(place);
    const auto target = std::ranges::find_if(targets, [&](const GradientTarget& made) {
      return made.unit == place.unit && made.owner == tensor.layer;
    });
    Operand gradient = target->made;
    gradient.part = OperandPart::parameter_gradient;
    gradient.access = Access::accumulate;
    gradient.first = target->made.first + tensor.begin - target->begin;
    gradient.count = tensor.elements;
    writer_.add(op, gradient);
  }
}

/// What the layers of a pass work on, one after the other: begun by an embedding or a head, or by
/// the message of another stage.
void PassOperands::stream(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const bool forward = each.role == OpRole::forward;
  const Operand received = message_of(writer_, op, Access::input, false);
  writer_.add(op, received);
  Operand stream = received;
  stream.access = received.buffer != kNone
                      ? Access::output
                      : stream_access(writer_.run().kind_of(each.layer).role, forward);
  const auto [at, fresh] = streams_.try_emplace({each.microbatch, forward}, kNone);
  if (fresh || stream.access == Access::output) {
    at->second = writer_.make(MemoryCategory::working, stream.count * bytes_of(stream.dtype), -1,
                              each.microbatch);
  }
  stream.buffer = at->second;
  writer_.add(op, stream);
  writer_.add(op, message_of(writer_, op, Access::output, true));
}

void PassOperands::room(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const LayerRoom& bytes = writer_.run().room(each.layer);
  const LayerRole role = writer_.run().kind_of(each.layer).role;
  const bool forward = each.role == OpRole::forward;
  const bool again = each.role == OpRole::recompute;
  const bool goes_on = number_in_pass(each) > 0;
  const auto mb = static_cast<std::size_t>(each.microbatch);

  BufferId& saved = saved_[static_cast<std::size_t>(each.layer)][mb];
  if (saved == kNone)
    saved = writer_.make(MemoryCategory::activations, bytes.saved, each.layer, each.microbatch);
  writer_.add(
      op, bytes_in(OperandPart::saved, forward && !goes_on ? Access::output : Access::accumulate,
                   saved, bytes.saved));

  const std::int64_t room = forward ? bytes.forward_workspace : bytes.backward_workspace;
  const BufferId ready = goes_on ? space_ : std::exchange(recomputed_, kNone);
  const MemoryCategory category = again                     ? MemoryCategory::recompute_scratch
                                  : role == LayerRole::head ? MemoryCategory::logits_and_loss
                                                            : MemoryCategory::working;
  const bool filled = (goes_on || each.role == OpRole::backward) && ready != kNone;
  space_ = filled ? ready : writer_.make(category, room, each.layer, each.microbatch);
  if (again) recomputed_ = space_;
  const bool stays = again || !is_last_region(op);
  const Access access = filled ? Access::accumulate : stays ? Access::output : Access::workspace;
  writer_.add(op, bytes_in(OperandPart::layer_workspace, access, space_, room));
  writer_.add(op, bytes_in(OperandPart::kernel_workspace, Access::workspace,
                           writer_.kernel_workspace(), writer_.kernel_workspace_bytes()));
}

void PassOperands::sums(OpId op) {
  for (const GradientTarget& target : flow_.of(op)) {
    if (!target.ends || !target.apart) continue;
    writer_.add(op, target.made);
    writer_.add(op, target.sum);
  }
}

}  // namespace shardwise
