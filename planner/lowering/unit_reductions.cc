#include "planner/lowering/unit_reductions.h"

#include <algorithm>

#include "planner/cost/stage_buffers.h"

namespace shardwise {
namespace {

ProgramOp operation(OpRole role, Stream stream, const LayerTurn& turn, std::int32_t cost) {
  ProgramOp op;
  op.role = role;
  op.stream = stream;
  op.chunk = turn.pass.chunk;
  op.layer = turn.layer().layer;
  op.microbatch = turn.pass.microbatch;
  op.cost = cost;
  return op;
}

/// Whether a unit is reduced over the inner axis.
bool moves(const UnitCosts& costs) { return costs.dense.reduce >= 0 || costs.routed.reduce >= 0; }

}  // namespace

UnitReductions::UnitReductions(const LoweringContext& context, std::int32_t stage,
                               StageBuilder& builder, UnitTable& units, CommunicatorOrder& order,
                               ArenaSlots& slots)
    : context_(context),
      builder_(builder),
      units_(units),
      order_(order),
      slots_(slots),
      sums_(context, builder, slots) {
  copies_ = context.engine().gradient_buffer == GradientBuffer::copy_in;
  capacity_ = context.layout().double_buffer ? 1 : context.engine().reduce_queue_elements;
  const StageParts parts = stage_parts(context.plan->model, context.memories,
                                       context.stages[static_cast<std::size_t>(stage)]);
  late_bytes_ = stage_states(parts, context.of_stage(stage)).late_gradients.bytes_each;
  staged_bytes_ = copies_ ? context.memory_rules.reduce_bytes
                          : gradient_element_bytes(context.memory_rules, context.layout());
  ends_with_piece_ = context.memory_rules.whole_pieces && gradients_wait(context.of_stage(stage));
  if (!slots.on())
    buffer_bytes_ = stage_buffers(parts, context.of_stage(stage)).reduce_buffer.bytes();
  std::size_t layers = 0;
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    layers += chunk.layers.size();
  }
  unit_.resize(layers);
}

bool UnitReductions::reduces(const LayerTurn& turn) const {
  const bool each = context_.layout().reduce_every_microbatch &&
                    context_.placement.gradients != Placement::replicate;
  return each || context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch);
}

/// The shard that a unit's gradients are reduced to, or all of them where nothing is sharded.
BufferId UnitReductions::late_buffer(const LayerTurn& turn) {
  Unit& unit = unit_[turn.slot()];
  if (late_bytes_ == 0 || unit.late) return kNone;
  unit.late = true;
  const UnitElements& sizes = units_.of(turn.layer()).sizes;
  const bool whole = context_.placement.gradients == Placement::replicate;
  const std::int64_t elements = whole ? sizes.trained()
                                      : sizes.padded_dense / context_.shards.dense +
                                            sizes.padded_routed / context_.shards.routed;
  const BufferId buffer =
      builder_.buffer(MemoryCategory::gradients, elements * late_bytes_, turn.layer().layer);
  if (buffer != kNone) late_buffers_.push_back(buffer);
  return buffer;
}

void UnitReductions::before(const LayerTurn& turn, OperationLists& lists) {
  if (!turn.makes_gradients()) return;
  if (buffer_bytes_ > 0 && buffer_ == kNone) {
    buffer_ = builder_.buffer(MemoryCategory::gradient_staging, buffer_bytes_);
    lists.allocates.push_back(buffer_);
  }
  if (turn.last) lists.frees.push_back(buffer_);
  const UnitWork& work = units_.of(turn.layer());
  if (!moves(work.costs)) {
    lists.allocates.push_back(late_buffer(turn));
    return;
  }
  Unit& unit = unit_[turn.slot()];
  if (slots_.on()) {
    if (context_.placement.gradients == Placement::replicate) return;
    const bool turns = !slots_.is_root(turn.layer());
    unit.staged = slots_.staged(turn.layer(), turn.slot(), turns ? turns_++ : 0);
    for (const BufferId staged : {unit.staged, slots_.staged_table(turn.layer())}) {
      lists.waits.push_back(slots_.last(staged));
      lists.uses.push_back(staged);
    }
    return;
  }
  const std::int64_t elements =
      ends_with_piece_ ? work.sizes.padded_dense + work.sizes.padded_routed : work.sizes.trained();
  const std::int64_t bytes = elements * staged_bytes_;
  const BufferId left = queues() ? wait_for_place(turn, bytes, lists) : kNone;
  // Single tensors are counted with the layer that makes them, unless they wait for a later
  // micro-batch.
  if (copies_ && context_.placement.gradients == Placement::replicate) {
    lists.allocates.push_back(late_buffer(turn));
    return;
  }
  const bool buffered = context_.placement.gradients == Placement::replicate;
  if (unit.staged != kNone) lists.uses.push_back(unit.staged);
  if (buffered || unit.staged != kNone || (copies_ && reduces(turn))) return;
  if (left != kNone) {
    unit.staged = left;
    lists.uses.push_back(left);
    return;
  }
  unit.staged = builder_.buffer(MemoryCategory::gradient_staging, bytes, turn.layer().layer,
                                turn.pass.microbatch);
  lists.allocates.push_back(unit.staged);
}

/// A queue takes another unit once less than its capacity is in it, and has one place for each:
/// Megatron-FSDP's TemporaryBucketAllocator keeps buckets by their number. What was reduced stays
/// in the queue until then (wait_for_previous_grad_reduce). Source: NVIDIA/Megatron-LM,
/// megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py.
/// \returns a buffer of so many bytes that left the queue, if one did: this unit goes there
BufferId UnitReductions::wait_for_place(const LayerTurn& turn, std::int64_t bytes,
                                        OperationLists& lists) {
  BufferId left = kNone;
  const auto there = [&] {
    return std::ranges::find(pending_, turn.slot(), &Pending::slot) != pending_.end();
  };
  while (!pending_.empty() &&
         (pending_elements_ - pending_.front().elements >= capacity_ || there())) {
    const Pending& first = pending_.front();
    lists.waits.push_back(first.op);
    const BufferId staged = first.staged;
    const bool fits = staged != kNone && builder_.program().buffers[staged].bytes == bytes;
    if (fits && left == kNone) {
      left = staged;
    } else if (staged != kNone) {
      builder_.also_frees(first.op, staged);
    }
    pending_elements_ -= first.elements;
    pending_.pop_front();
  }
  return left;
}

/// The queue lets go of everything at the end of a backward pass (GradReducePipeline.reset).
void UnitReductions::drain(const LayerTurn& turn) {
  if (!queues() || turn.at + 1 < turn.order.size()) return;
  for (Pending& each : pending_) {
    if (each.staged == kNone) continue;
    builder_.also_frees(builder_.last(Stream::reduce_scatter), each.staged);
    each.staged = kNone;
  }
}

/// Gradients of single tensors into the input of the reduction, once the one before has left its
/// own. FSDP1, whose gradients autograd joins in a tensor of each unit, does not wait for that.
/// \returns the operation after which the input is there
OpId UnitReductions::copy_in(const LayerTurn& turn, OpId op, BufferId& staged) {
  const UnitWork& work = units_.of(turn.layer());
  Unit& unit = unit_[turn.slot()];
  staged = buffer_bytes_ > 0 ? kNone
                             : builder_.buffer(MemoryCategory::gradient_staging,
                                               work.sizes.trained() * staged_bytes_,
                                               turn.layer().layer, turn.pass.microbatch);
  const bool waits = context_.engine().gather != GatherBuffer::rate_limited;
  const OpId copy =
      builder_.add(operation(OpRole::copy_in, Stream::compute, turn, work.costs.copy_in),
                   {op, waits ? last_reduced_ : kNone}, {staged}, {unit.staged});
  builder_.lies_in(copy, OperandPart::sent_gradients, staged);
  unit.staged = kNone;
  return copy;
}

void UnitReductions::reduce(const LayerTurn& turn, OpId made, BufferId staged) {
  const UnitWork& work = units_.of(turn.layer());
  Unit& unit = unit_[turn.slot()];
  const bool last = context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch);
  const bool sums = unit.accumulated || !copies_;
  const bool accumulates = context_.num_microbatches > 1 &&
                           context_.layout().reduce_every_microbatch && sums &&
                           context_.placement.gradients != Placement::replicate;
  unit.accumulated = true;
  BufferId late = late_buffer(turn);
  OpId done = kNone;
  const std::array<UnitCosts::Group, 2> costs = {work.costs.dense, work.costs.routed};
  std::array<OpId, 2> reduced = {kNone, kNone};
  const int final = costs[1].reduce >= 0 ? 1 : 0;
  // What is reduced in place is there until it joins the shard.
  const bool joins = accumulates && work.costs.accumulate >= 0;
  const bool in_place = !copies_ && joins;
  const bool keeps = !copies_;
  for (int i = 0; i < 2; ++i) {
    const UnitCosts::Group& group = costs[static_cast<std::size_t>(i)];
    if (group.reduce < 0) continue;
    ProgramOp op = operation(OpRole::reduce, Stream::reduce_scatter, turn, group.reduce);
    op.routed = i == 1;
    const std::vector<OpId> waits = {made, order_.before_reduce(op.routed)};
    const std::vector<BufferId> allocates = {late};
    const bool frees = i == final && !keeps;
    const std::int64_t padded = i == 1 ? work.sizes.padded_routed : work.sizes.padded_dense;
    done = sums_.reduce(op, group, padded,
                        {waits, allocates, {frees ? staged : kNone}, {frees ? kNone : staged}});
    if (slots_.on()) slots_.touch(staged, done);
    late = kNone;
    order_.reduced(op.routed, done);
    reduced[static_cast<std::size_t>(i)] = done;
  }
  last_reduced_ = done;
  if (joins) {
    const OpId joined = builder_.add(
        operation(OpRole::accumulate, Stream::reduce_scatter, turn, work.costs.accumulate), {done},
        {}, {}, {copies_ ? kNone : staged});
    if (slots_.on()) slots_.touch(staged, joined);
    if (in_place) done = joined;
  }
  if (done != kNone) {
    pending_.push_back({done, work.sizes.trained(), turn.slot(), queues() ? staged : kNone});
    pending_elements_ += work.sizes.trained();
  }
  if (last) reduce_outer(turn, reduced, builder_.last(Stream::reduce_scatter));
}

/// The shard over dp_replicate, once a step.
void UnitReductions::reduce_outer(const LayerTurn& turn, const std::array<OpId, 2>& reduced,
                                  OpId accumulated) {
  const UnitCosts& costs = units_.of(turn.layer()).costs;
  for (const bool routed : {false, true}) {
    const std::int32_t cost = (routed ? costs.routed : costs.dense).reduce_outer;
    if (cost < 0) continue;
    ProgramOp op = operation(OpRole::reduce_outer, Stream::outer_reduce, turn, cost);
    op.routed = routed;
    builder_.add(op, {reduced[routed ? 1 : 0], accumulated});
  }
}

void UnitReductions::after(const LayerTurn& turn, OpId op) {
  if (!turn.makes_gradients()) return;
  const UnitWork& work = units_.of(turn.layer());
  if (!moves(work.costs)) {
    if (context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch)) {
      reduce_outer(turn, {op, op}, kNone);
    }
    return drain(turn);
  }
  Unit& unit = unit_[turn.slot()];
  builder_.lies_in(op, OperandPart::gradient_sum, unit.staged);
  if (slots_.on()) {
    slots_.touch(unit.staged, op);
    if (unit.staged != kNone) slots_.touch(slots_.staged_table(turn.layer()), op);
  }
  if (!reduces(turn)) return drain(turn);
  BufferId staged = unit.staged;
  const bool copies = copies_ && context_.placement.parameters != Placement::replicate;
  if (copies && work.costs.copy_in >= 0) {
    op = copy_in(turn, op, staged);
  }
  unit.staged = kNone;
  reduce(turn, op, staged);
  drain(turn);
}

}  // namespace shardwise
