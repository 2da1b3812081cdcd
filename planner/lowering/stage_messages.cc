#include "planner/lowering/stage_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "planner/cost/memory/stage_moments.h"
#include "planner/schedule/message_slots.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"

namespace shardwise {

namespace {

using Use = MessageBuffers::Use;

/// Of a message of the stage, where the engine plans buffers for them.
std::int64_t buffer_bytes(const LoweringContext& context, std::int32_t stage) {
  const bool planned = plans_buffers(context.engine());
  if (!planned || context.layout().pp == 1) return 0;
  return stage_parts(context.plan->model, context.memories,
                     context.stages[static_cast<std::size_t>(stage)])
      .boundary;
}

}  // namespace

StageMessages::StageMessages(const LoweringContext& context, std::int32_t stage,
                             StageBuilder& builder)
    : context_(context),
      stage_(stage),
      builder_(builder),
      buffers_(builder, buffer_bytes(context, stage)) {
  if (context.layout().pp == 1) return;
  const std::int64_t chunks = context.chunks / context.layout().pp;
  received_.resize(static_cast<std::size_t>(2 * context.num_microbatches * chunks));
  ahead_ = posts_receives_ahead(context.layout());
  CollectiveWork hop;
  hop.kind = CollectiveKind::send_recv;
  hop.group = GroupKind::pp;
  hop.dtype = context.job().precision == DType::fp32 ? DType::fp32 : DType::bf16;
  hop.bytes = context.hop_bytes;
  cost_ = builder.collective_cost(hop);
  const MessageSlots slots = message_slots(context.layout(), stage, context.num_microbatches);
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    if (travels(chunk.number - 1)) {
      const std::int32_t before = stage_of_chunk(context.layout(), chunk.number - 1);
      buffers_.make(Use::receive_forward, before, slots.receive_forward);
      buffers_.make(Use::send_backward, before, slots.send_backward);
    }
    if (travels(chunk.number)) {
      const std::int32_t after = stage_of_chunk(context.layout(), chunk.number + 1);
      buffers_.make(Use::receive_backward, after, slots.receive_backward);
      buffers_.make(Use::send_forward, after, slots.send_forward);
    }
    for (const std::int32_t other : {chunk.number - 1, chunk.number + 1}) {
      if (other < 0 || other >= context.chunks) continue;
      add_inbox(stage_of_chunk(context.layout(), other));
    }
  }
}

void StageMessages::add_inbox(std::int32_t from) {
  const auto known = std::ranges::find(inboxes_, from, &Inbox::from);
  if (from == stage_ || known != inboxes_.end()) return;
  Inbox inbox;
  inbox.from = from;
  for (const PipelinePass& pass : context_.orders[static_cast<std::size_t>(from)]) {
    Message message;
    if (!made_by(from, pass, message)) continue;
    if (receiver(message) == stage_) inbox.messages.push_back(message);
  }
  inboxes_.push_back(std::move(inbox));
}

std::int32_t StageMessages::chunk_number(std::int32_t stage, std::int16_t chunk) const {
  return context_.stage_chunks[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)]
      .number;
}

bool StageMessages::travels(std::int32_t lower) const {
  const Layout& layout = context_.layout();
  return lower >= 0 && lower + 1 < context_.chunks &&
         stage_of_chunk(layout, lower) != stage_of_chunk(layout, lower + 1);
}

std::int32_t StageMessages::number_of(const Message& message) const {
  return 2 * (message.microbatch * context_.chunks + message.lower) + (message.backward ? 1 : 0);
}

std::int32_t StageMessages::receiver(const Message& message) const {
  return stage_of_chunk(context_.layout(), message.backward ? message.lower : message.lower + 1);
}

/// The message that a pass ends with, if any.
bool StageMessages::made_by(std::int32_t stage, const PipelinePass& pass, Message& message) const {
  if (pass.part == LayerPart::backward_weight) return false;
  message.backward = pass.part != LayerPart::forward;
  message.microbatch = pass.microbatch;
  message.lower = chunk_number(stage, pass.chunk) - (message.backward ? 1 : 0);
  return travels(message.lower);
}

OpId StageMessages::add(OpRole role, Stream stream, const Message& message, std::int32_t peer,
                        std::int16_t chunk, const OperationLists& lists) {
  ProgramOp op;
  op.role = role;
  op.stream = stream;
  op.chunk = chunk;
  op.microbatch = message.microbatch;
  op.part = message.lower;
  op.cost = cost_;
  op.message = number_of(message);
  op.peer = peer;
  return builder_.add(op, lists.waits, lists.allocates, lists.frees, lists.uses);
}

StageMessages::Handed StageMessages::receive(const PipelinePass& pass) {
  if (pass.part == LayerPart::backward_weight) return {};
  Message needed;
  needed.backward = pass.part != LayerPart::forward;
  needed.microbatch = pass.microbatch;
  needed.lower = chunk_number(stage_, pass.chunk) - (needed.backward ? 0 : 1);
  if (!travels(needed.lower)) return {};
  const std::int32_t sender = needed.backward ? needed.lower + 1 : needed.lower;
  const std::int32_t from = stage_of_chunk(context_.layout(), sender);
  const auto inbox = std::ranges::find(inboxes_, from, &Inbox::from);
  const Handed& handed = received(needed);
  while (handed.op == kNone) {
    SHARDWISE_CHECK(inbox->next < inbox->messages.size(), std::to_string(number_of(needed)));
    const Message& message = inbox->messages[inbox->next++];
    const std::int32_t to = message.backward ? message.lower : message.lower + 1;
    lists_.clear();
    lists_.waits.push_back(ahead_ ? kNone : passed_);
    const BufferId buffer = buffers_.fill(
        message.backward ? Use::receive_backward : Use::receive_forward, from, lists_);
    const OpId op =
        add(message.backward ? OpRole::receive_backward : OpRole::receive_forward, Stream::receive,
            message, from, static_cast<std::int16_t>(to / context_.layout().pp), lists_);
    builder_.message_in(op, buffer, false);
    buffers_.filled(buffer, op);
    received(message) = {op, buffer};
  }
  return handed;
}

StageMessages::Handed& StageMessages::received(const Message& message) {
  const std::int32_t pp = context_.layout().pp;
  const std::int32_t to = message.backward ? message.lower : message.lower + 1;
  const std::int32_t pass = message.microbatch * (context_.chunks / pp) + to / pp;
  return received_[2 * static_cast<std::size_t>(pass) + (message.backward ? 1U : 0U)];
}

BufferId StageMessages::before_last(const PipelinePass& pass, OperationLists& lists) {
  Message message;
  if (!made_by(stage_, pass, message)) return kNone;
  return buffers_.fill(message.backward ? Use::send_backward : Use::send_forward, receiver(message),
                       lists);
}

void StageMessages::send(const PipelinePass& pass, BufferId buffer, OpId done) {
  passed_ = done;
  Message message;
  if (!made_by(stage_, pass, message)) return;
  buffers_.filled(buffer, done);
  lists_.clear();
  lists_.waits.push_back(done);
  lists_.uses.push_back(buffer);
  const OpId sent = add(message.backward ? OpRole::send_backward : OpRole::send_forward,
                        Stream::send, message, receiver(message), pass.chunk, lists_);
  builder_.message_in(sent, buffer, true);
  buffers_.emptied(buffer, sent);
}

}  // namespace shardwise
