#include "planner/lowering/data_parallel/unit_reductions.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {
namespace {

ProgramOp operation(OpRole role, Stream stream, const LayerTurn& turn, std::int32_t cost,
                    std::int32_t part = -1) {
  ProgramOp op;
  op.role = role;
  op.stream = stream;
  op.chunk = turn.pass.chunk;
  op.layer = turn.layer().layer;
  op.microbatch = turn.pass.microbatch;
  op.part = part;
  op.cost = cost;
  return op;
}

/// Whether a unit is reduced over the inner axis.
bool is_reduced(const UnitCosts& costs) {
  return costs.dense.reduce >= 0 || costs.routed.reduce >= 0;
}

}  // namespace

UnitReductions::UnitReductions(const LoweringContext& context, std::int32_t stage,
                               StageBuilder& builder, UnitTable& units, CommunicatorOrder& order,
                               ArenaSlots& slots)
    : context_(context),
      builder_(builder),
      units_(units),
      stage_units_(context, stage, units),
      order_(order),
      slots_(slots),
      sums_(context, builder, slots) {
  copies_ = context.engine().gradient_buffer == GradientBuffer::copy_in;
  const StageParts parts = stage_parts(context.plan->model, context.memories,
                                       context.stages[static_cast<std::size_t>(stage)]);
  const QueueCapacity capacity =
      queue_capacity(context.engine(), context.layout(), mean_unit(parts));
  capacity_ = context.layout().double_buffer ? 1 : capacity.reductions;
  late_bytes_ = stage_states(parts, context.of_stage(stage)).late_gradients.bytes_each;
  staged_bytes_ = copies_ ? context.memory_rules.reduce_bytes
                          : gradient_element_bytes(context.memory_rules, context.layout());
  ends_with_piece_ = context.memory_rules.whole_pieces && gradients_wait(context.of_stage(stage));
  if (!slots.on()) {
    one_buffer_ = reduce_buffer(context.memory_rules, context.layout()).count > 0;
    buffer_bytes_ = stage_buffers(parts, context.of_stage(stage)).reduce_buffer.bytes();
  }
  joins_ = joins_root(context.engine(), context.layout(), context.own_kernels);
  makes_anew_ = joins_ && !gradients_wait(context.of_stage(stage));
  root_elements_ = parts.root.elements();
  unit_.resize(stage_units_.size());
}

bool UnitReductions::reduces(const LayerTurn& turn) const {
  return reduces_after(context_.layout(),
                       context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch));
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
  // Of a layer that is fullest before it makes a weight gradient, it comes with the next one.
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(turn.layer().kind)];
  const bool made = turn.at > 0 || memory.backward.gradients > 0;
  if (buffer_bytes_ > 0 && buffer_ == kNone && made) {
    buffer_ = builder_.buffer(MemoryCategory::gradient_staging, buffer_bytes_);
    lists.allocates.push_back(buffer_);
  }
  if (turn.at + 1 == turn.order.size()) lists.frees.push_back(std::exchange(buffer_, kNone));
  if (makes_anew_ && reduces(turn)) hold_root(turn, lists);
  const std::span<const LayerUnit> units = stage_units_.of(turn.slot());
  for (std::size_t u = units.size(); u-- > 0;) hold(turn, units[u], lists);
}

/// Room for the gradients of a unit that the layer makes.
void UnitReductions::hold(const LayerTurn& turn, const LayerUnit& each, OperationLists& lists) {
  const UnitWork& work = *each.work;
  if (!is_reduced(work.costs)) {
    if (each.part < 0) lists.allocates.push_back(late_buffer(turn));
    return;
  }
  Unit& unit = unit_[each.number];
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
  const std::int64_t elements = ends_with_piece_
                                    ? work.sizes.padded_dense + work.sizes.padded_routed
                                    : work.sizes.trained_room();
  const std::int64_t bytes = elements * staged_bytes_;
  const BufferId left = queues() ? wait_for_place(each.number, bytes, lists) : kNone;
  // Single tensors are counted with the layer that makes them, unless they wait for a later
  // micro-batch.
  if (copies_ && context_.placement.gradients == Placement::replicate) {
    if (!reduces(turn) || context_.num_microbatches > 1) {
      lists.allocates.push_back(late_buffer(turn));
    }
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

/// Of the unit that joined the queue last. Double buffers count what is outside the units as one
/// (_enforce_double_buffer_limit). \pre something is in the queue
std::int64_t UnitReductions::last_elements() const {
  std::int64_t elements = pending_.back().elements;
  if (!context_.layout().double_buffer || !pending_.back().root) return elements;
  for (auto each = pending_.rbegin() + 1; each != pending_.rend() && each->root; ++each) {
    elements += each->elements;
  }
  return elements;
}

/// The unit before joined the queue once no more than its capacity was left there, and this one
/// comes beside it; a queue has one place for each unit: Megatron-FSDP's TemporaryBucketAllocator
/// keeps buckets by their number. What was reduced stays in the queue until then
/// (wait_for_previous_grad_reduce). Source: NVIDIA/Megatron-LM,
/// megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py.
/// \returns a buffer of so many bytes that left the queue, if one did: this unit goes there
BufferId UnitReductions::wait_for_place(std::size_t unit, std::int64_t bytes,
                                        OperationLists& lists) {
  BufferId left = kNone;
  const auto there = [&] {
    return std::ranges::find(pending_, unit, &Pending::unit) != pending_.end();
  };
  while (!pending_.empty() && (pending_elements_ - last_elements() > capacity_ || there())) {
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

bool UnitReductions::is_joined(const StageLayer& layer) const {
  const LayerRole role = context_.memories[static_cast<std::size_t>(layer.kind)].role;
  const bool root = role == LayerRole::embedding || role == LayerRole::head;
  return joins_ && root && is_reduced(units_.of(layer).costs);
}

/// Gradients of the root's layer that ran just before this one wait from here on.
void UnitReductions::hold_root(const LayerTurn& turn, OperationLists& lists) {
  if (turn.at == 0 || !is_joined(turn.order[turn.at - 1])) return;
  const StageLayer& before = turn.order[turn.at - 1];
  BufferId& waiting = unit_[turn.slots[turn.at - 1]].staged;
  waiting = builder_.buffer(MemoryCategory::gradient_staging,
                            units_.of(before).sizes.trained() * context_.memory_rules.weight_bytes,
                            before.layer, turn.pass.microbatch);
  lists.allocates.push_back(waiting);
}

/// Gradients of the root's layers into one tensor, which is there from the first of them to the
/// reduction of the last one.
OpId UnitReductions::join_root(const LayerTurn& turn, OpId op, BufferId& staged) {
  const UnitWork& work = units_.of(turn.layer());
  BufferId& waiting = unit_[turn.slot()].staged;
  const bool last = turn.at + 1 == turn.order.size();
  std::vector<BufferId> allocates;
  if (makes_anew_ && joined_ == kNone) {
    const UnitElements& made = units_.of(turn.order.back()).sizes;
    const auto buffer = [&](std::int64_t bytes) {
      return builder_.buffer(MemoryCategory::gradient_staging, bytes, turn.order.back().layer,
                             turn.pass.microbatch);
    };
    made_ = buffer(made.trained() * context_.memory_rules.weight_bytes);
    joined_ = buffer(root_elements_ * staged_bytes_);
    allocates = {made_, joined_};
  }
  const OpId copy = builder_.add(
      operation(OpRole::copy_in, Stream::compute, turn, work.costs.copy_in), std::array{op},
      allocates, std::array{waiting, last ? made_ : kNone}, std::array{joined_});
  waiting = kNone;
  staged = last ? std::exchange(joined_, kNone) : kNone;
  return copy;
}

/// What lies beside the input of a reduction when that is made, where it may be the most of a
/// stage: the single gradients that autograd joins in it; or (LayerMemory::reduces_apart) an
/// embedding's gradients, and the weights of norm and head, which are gathered and copied out again
/// for the norm.
BufferId UnitReductions::beside_copy(const LayerTurn& turn) {
  const StageLayer& layer = turn.layer();
  if (makes_anew_) {
    return builder_.buffer(MemoryCategory::gradient_staging,
                           units_.of(layer).sizes.trained() * context_.memory_rules.weight_bytes,
                           layer.layer, turn.pass.microbatch);
  }
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(layer.kind)];
  if (!memory.reduces_apart) return kNone;
  if (memory.role == LayerRole::embedding) {
    return builder_.buffer(MemoryCategory::gradient_staging, memory.reduction.gradients,
                           layer.layer, turn.pass.microbatch);
  }
  const bool gathers = context_.layout().reshard_after_forward != 0;
  const std::int64_t whole = units_.of(layer).sizes.elements() * context_.memory_rules.weight_bytes;
  return gathers ? builder_.buffer(MemoryCategory::gathered_weights, 2 * whole, layer.layer,
                                   turn.pass.microbatch)
                 : kNone;
}

/// Gradients of single tensors into the input of the reduction, once the one before has left its
/// own. FSDP1, whose gradients autograd joins in a tensor of each unit, does not wait for that: the
/// single ones are there beside it.
/// \returns the operation after which the input is there
OpId UnitReductions::copy_in(const LayerTurn& turn, OpId op, BufferId& staged) {
  if (is_joined(turn.layer())) return join_root(turn, op, staged);
  const UnitWork& work = units_.of(turn.layer());
  Unit& unit = unit_[turn.slot()];
  staged = one_buffer_ ? kNone
                       : builder_.buffer(MemoryCategory::gradient_staging,
                                         work.sizes.trained() * staged_bytes_, turn.layer().layer,
                                         turn.pass.microbatch);
  if (kept_ != kNone) builder_.also_frees(op, std::exchange(kept_, kNone));
  const bool waits = context_.engine().gather != GatherBuffer::rate_limited;
  const BufferId beside = beside_copy(turn);
  const OpId copy =
      builder_.add(operation(OpRole::copy_in, Stream::compute, turn, work.costs.copy_in),
                   {op, waits ? last_reduced_ : kNone}, {staged, beside}, {unit.staged, beside});
  builder_.lies_in(copy, OperandPart::sent_gradients, staged);
  unit.staged = kNone;
  return copy;
}

void UnitReductions::reduce(const LayerTurn& turn, const LayerUnit& each, OpId made,
                            BufferId staged) {
  const UnitWork& work = *each.work;
  Unit& unit = unit_[each.number];
  const bool last = context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch);
  const bool sums = unit.accumulated || !copies_;
  const bool accumulates = context_.num_microbatches > 1 && reduces_each(context_.layout()) && sums;
  unit.accumulated = true;
  BufferId late = each.part < 0 ? late_buffer(turn) : kNone;
  OpId done = kNone;
  const std::array<UnitCosts::Group, 2> costs = {work.costs.dense, work.costs.routed};
  std::array<OpId, 2> reduced = {kNone, kNone};
  const int final = costs[1].reduce >= 0 ? 1 : 0;
  // What is reduced in place is there until it joins the shard.
  const bool joins = accumulates && work.costs.accumulate >= 0;
  const bool in_place = !copies_ && joins;
  const bool stays =
      context_.engine().keeps_last_reduction && !last && turn.at + 1 == turn.order.size();
  if (stays && copies_) kept_ = staged;
  const bool keeps = !copies_ || stays;
  for (int i = 0; i < 2; ++i) {
    const UnitCosts::Group& group = costs[static_cast<std::size_t>(i)];
    if (group.reduce < 0) continue;
    ProgramOp op = operation(OpRole::reduce, Stream::reduce_scatter, turn, group.reduce, each.part);
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
    const OpId joined = builder_.add(operation(OpRole::accumulate, Stream::reduce_scatter, turn,
                                               work.costs.accumulate, each.part),
                                     {done}, {}, {}, {copies_ ? kNone : staged});
    if (slots_.on()) slots_.touch(staged, joined);
    if (in_place) done = joined;
  }
  if (done != kNone) {
    pending_.push_back(
        {done, work.sizes.trained_room(), each.number, each.part >= 0, queues() ? staged : kNone});
    pending_elements_ += work.sizes.trained_room();
  }
  if (reduces_outer_after(last))
    reduce_outer(turn, each, reduced, builder_.last(Stream::reduce_scatter));
}

/// The shard over dp_replicate, once a step.
void UnitReductions::reduce_outer(const LayerTurn& turn, const LayerUnit& unit,
                                  const std::array<OpId, 2>& reduced, OpId accumulated) {
  const UnitCosts& costs = unit.work->costs;
  for (const bool routed : {false, true}) {
    const std::int32_t cost = (routed ? costs.routed : costs.dense).reduce_outer;
    if (cost < 0) continue;
    ProgramOp op = operation(OpRole::reduce_outer, Stream::outer_reduce, turn, cost, unit.part);
    op.routed = routed;
    builder_.add(op, {reduced[routed ? 1 : 0], accumulated});
  }
}

void UnitReductions::after(const LayerTurn& turn, OpId op) {
  if (!turn.makes_gradients()) return;
  if (!is_joined(turn.layer()) || !reduces(turn)) return reduce_units(turn, op);
  if (turn.at + 1 < turn.order.size()) return;
  LayerTurn each = turn;
  for (each.at = 0; each.at < turn.order.size(); ++each.at) {
    if (is_joined(each.layer())) reduce_units(each, op);
  }
}

/// Those of which the layer has made the last gradients, the last one registered first.
void UnitReductions::reduce_units(const LayerTurn& turn, OpId op) {
  const std::span<const LayerUnit> units = stage_units_.of(turn.slot());
  for (std::size_t u = units.size(); u-- > 0;) {
    if (units[u].completes) reduce_unit(turn, units[u], op);
  }
  drain(turn);
}

void UnitReductions::reduce_unit(const LayerTurn& turn, const LayerUnit& each, OpId op) {
  const UnitWork& work = *each.work;
  if (!is_reduced(work.costs)) {
    if (reduces_outer_after(context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch))) {
      reduce_outer(turn, each, {op, op}, kNone);
    }
    return;
  }
  Unit& unit = unit_[each.number];
  builder_.lies_in(op, OperandPart::gradient_sum, unit.staged);
  if (slots_.on()) {
    slots_.touch(unit.staged, op);
    if (unit.staged != kNone) slots_.touch(slots_.staged_table(turn.layer()), op);
  }
  if (!reduces(turn)) return;
  BufferId staged = unit.staged;
  if (copies_ && work.costs.copy_in >= 0) op = copy_in(turn, op, staged);
  unit.staged = kNone;
  reduce(turn, each, op, staged);
}

}  // namespace shardwise
