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
  const Layout& layout = context.layout();
  const std::int64_t tokens = layout.micro_batch_size * context.job().sequence_length /
                              (layout.sequence_parallel ? layout.tp : 1);
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
  const std::tuple pass = {each.role, each.layer, each.microbatch};
  begins_ = std::exchange(pass_, pass) != pass;
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

/// Whether nothing of its pass follows, or no other region.
bool PassOperands::is_last(OpId op, bool of_regions) const {
  const ProgramOp& each = writer_.operation(op);
  for (OpId next = op + 1; next < writer_.program().operations.size(); ++next) {
    const ProgramOp& other = writer_.operation(next);
    if (of_regions && is_between_regions(writer_.program(), other)) continue;
    const bool pass = other.role == OpRole::forward || other.role == OpRole::recompute ||
                      other.role == OpRole::backward;
    if (!pass) continue;
    return other.role != each.role || other.layer != each.layer ||
           other.microbatch != each.microbatch;
  }
  return true;
}

/// A recompute works on what was kept, and a head's backward pass makes the stream's gradient in
/// the end, from what was kept of the stream. An embedding whose ranks have pieces of the stream
/// works forward on all tokens.
bool PassOperands::works_on_stream(OpId op) const {
  const ProgramOp& each = writer_.operation(op);
  if (each.role == OpRole::recompute) return false;
  const LayerRole layer = writer_.run().kind_of(each.layer).role;
  if (layer == LayerRole::embedding && each.role == OpRole::forward) {
    const std::vector<MetTensor>& met = writer_.run().room(each.layer).met_forward;
    return met.empty() || !met.front().own;
  }
  return layer != LayerRole::head || each.role == OpRole::forward || is_last(op, true);
}

/// The tensor of a collective between two regions. One that ends a stage's pass leaves the stream
/// in the buffer of the message too.
void PassOperands::met(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const std::vector<MetTensor>& tensors = writer_.run().room(each.layer).met(each.role);
  const std::size_t number = number_in_pass(each);
  SHARDWISE_CHECK(number < tensors.size(), name_of(writer_.program(), each));
  const MetTensor& tensor = tensors[number];
  if (tensor.own) return met_piece(op, tensor);
  Operand operand;
  operand.part = tensor.part;
  operand.access = Access::accumulate;
  operand.dtype = tensor.dtype;
  operand.first = tensor.first;
  operand.count = tensor.count;
  operand.piece = tensor.piece;
  operand.buffer = met_buffer(op, tensor.part);
  writer_.add(op, operand);
  writer_.add(op, message_of(writer_, op, Access::output, true));
}

BufferId PassOperands::met_buffer(OpId op, OperandPart part, bool apart) const {
  const ProgramOp& each = writer_.operation(op);
  const auto layer = static_cast<std::size_t>(each.layer);
  const auto mb = static_cast<std::size_t>(each.microbatch);
  const BufferId buffer = part == OperandPart::stream
                              ? streams_.at({each.microbatch, each.role == OpRole::forward})
                          : part == OperandPart::saved ? saved_[layer][mb]
                          : apart                      ? gathered_space_
                                                       : space_;
  SHARDWISE_CHECK(buffer != kNone, name_of(writer_.program(), each));
  return buffer;
}

/// The whole tensor, then the rank's piece of it. A pass that a gather begins finds its stream in
/// the message of another stage, where there is one, and its workspace empty.
void PassOperands::met_piece(OpId op, const MetTensor& tensor) {
  const ProgramOp& each = writer_.operation(op);
  const bool gathers = writer_.program().communication(each)->kind == CollectiveKind::all_gather;
  const bool empty = begins_ && !workspace(op);
  Operand own;
  own.part = tensor.own->part;
  own.access = gathers ? Access::input : tensor.own->adds ? Access::accumulate : Access::output;
  own.dtype = tensor.dtype;
  own.first = tensor.own->first;
  own.count = tensor.piece;
  const bool stream = own.part == OperandPart::stream;
  Operand received;
  received.buffer = kNone;
  if (stream && begins_) received = message_of(writer_, op, Access::input, false);
  if (received.buffer != kNone) own.access = Access::output;
  if (stream && own.access == Access::output) begin_stream(op, own.count * bytes_of(own.dtype));
  own.buffer = met_buffer(op, own.part);
  Operand whole;
  whole.part = tensor.part;
  whole.access = gathers ? Access::output : Access::input;
  whole.dtype = tensor.dtype;
  whole.first = tensor.first;
  whole.count = tensor.count;
  whole.piece = tensor.piece;
  whole.buffer = met_buffer(op, tensor.part, tensor.apart);
  writer_.add(op, whole);
  writer_.add(op, own);
  writer_.add(op, received);
  writer_.add(op, message_of(writer_, op, Access::output, true));
  if (empty) {
    writer_.add(
        op, bytes_in(OperandPart::layer_workspace, Access::output, space_, workspace_bytes(op)));
  }
}

void PassOperands::begin_stream(OpId op, std::int64_t bytes) {
  const ProgramOp& each = writer_.operation(op);
  streams_[{each.microbatch, each.role == OpRole::forward}] =
      writer_.make(MemoryCategory::working, bytes, -1, each.microbatch);
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
  const std::pair key = {each.microbatch, forward};
  if (!streams_.contains(key) || stream.access == Access::output) {
    begin_stream(op, stream.count * bytes_of(stream.dtype));
  }
  stream.buffer = streams_.at(key);
  writer_.add(op, stream);
  writer_.add(op, message_of(writer_, op, Access::output, true));
}

std::int64_t PassOperands::workspace_bytes(OpId op) const {
  const ProgramOp& each = writer_.operation(op);
  const LayerRoom& bytes = writer_.run().room(each.layer);
  return each.role == OpRole::forward ? bytes.forward_workspace : bytes.backward_workspace;
}

/// What a pass works in: made by its first operation, or with what a recompute left there.
/// \returns whether something is in it
bool PassOperands::workspace(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const LayerRole role = writer_.run().kind_of(each.layer).role;
  const bool again = each.role == OpRole::recompute;
  const BufferId ready = begins_ ? std::exchange(recomputed_, kNone) : space_;
  const MemoryCategory category = again                     ? MemoryCategory::recompute_scratch
                                  : role == LayerRole::head ? MemoryCategory::logits_and_loss
                                                            : MemoryCategory::working;
  const bool filled = (!begins_ || each.role == OpRole::backward) && ready != kNone;
  space_ =
      filled ? ready : writer_.make(category, workspace_bytes(op), each.layer, each.microbatch);
  if (again) recomputed_ = space_;
  if (begins_ && each.role != OpRole::forward) {
    gathered_space_ = writer_.make(MemoryCategory::working, writer_.run().room(each.layer).gathered,
                                   each.layer, each.microbatch);
  }
  return filled;
}

void PassOperands::room(OpId op) {
  const ProgramOp& each = writer_.operation(op);
  const LayerRoom& bytes = writer_.run().room(each.layer);
  const bool again = each.role == OpRole::recompute;
  const auto mb = static_cast<std::size_t>(each.microbatch);

  BufferId& saved = saved_[static_cast<std::size_t>(each.layer)][mb];
  if (saved == kNone)
    saved = writer_.make(MemoryCategory::activations, bytes.saved, each.layer, each.microbatch);
  writer_.add(
      op, bytes_in(OperandPart::saved,
                   each.role == OpRole::forward && begins_ ? Access::output : Access::accumulate,
                   saved, bytes.saved));

  const bool filled = workspace(op);
  const bool stays = again || !is_last(op, false);
  const Access access = filled ? Access::accumulate : stays ? Access::output : Access::workspace;
  writer_.add(op, bytes_in(OperandPart::layer_workspace, access, space_, workspace_bytes(op)));
  if (each.role != OpRole::forward) {
    writer_.add(
        op, bytes_in(OperandPart::layer_workspace, begins_ ? Access::output : Access::accumulate,
                     gathered_space_, bytes.gathered));
  }
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
