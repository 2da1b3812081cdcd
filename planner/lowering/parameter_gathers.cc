#include "planner/lowering/parameter_gathers.h"

#include "planner/cost/gathers_once.h"
#include "planner/cost/stage_buffers.h"

namespace shardwise {
namespace {

constexpr auto kGathered = MemoryCategory::gathered_weights;

Pass pass_of(const LayerTurn& turn) {
  return turn.pass.part == LayerPart::forward ? Pass::forward : Pass::backward;
}

bool moves(const UnitCosts& costs) {
  return costs.dense.gather >= 0 || costs.routed.gather >= 0 || costs.dense.gather_outer >= 0 ||
         costs.routed.gather_outer >= 0;
}

}  // namespace

ParameterGathers::ParameterGathers(const LoweringContext& context, std::int32_t stage,
                                   StageBuilder& builder, UnitTable& units,
                                   CommunicatorOrder& order, ArenaSlots& slots)
    : context_(context),
      stage_(stage),
      builder_(builder),
      units_(units),
      order_(order),
      slots_(slots) {
  const GatherBuffer buffer = context.engine().gather;
  if (context.layout().double_buffer || buffer == GatherBuffer::double_buffer) {
    rule_ = Rule::double_buffered;
  } else if (buffer == GatherBuffer::rate_limited) {
    rule_ = Rule::limited;
  } else if (buffer == GatherBuffer::copy_out) {
    rule_ = Rule::copied;
  } else {
    rule_ = Rule::queued;
  }
  std::size_t layers = 0;
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    layers += chunk.layers.size();
  }
  held_.resize(layers);
}

/// The two buffers that units take turns with, made by the first gather.
BufferId ParameterGathers::make_double_buffers() {
  if (rule_ != Rule::double_buffered || slots_.on() || double_buffers_ != kNone) return kNone;
  const StageParts parts = stage_parts(context_.plan->model, context_.memories,
                                       context_.stages[static_cast<std::size_t>(stage_)]);
  const StageBuffers buffers = stage_buffers(parts, context_.of_stage(stage_));
  double_buffers_ = builder_.buffer(kGathered, buffers.queue.bytes(context_.memory_rules));
  return double_buffers_;
}

bool ParameterGathers::is_root(const StageLayer& layer) const {
  if (slots_.on()) return slots_.is_root(layer);
  const LayerRole role = context_.memories[static_cast<std::size_t>(layer.kind)].role;
  return role == LayerRole::embedding || role == LayerRole::head;
}

bool ParameterGathers::kept_over_step(const StageLayer& layer) const {
  if (gathers_once(context_.layout(), context_.engine())) return true;
  if (rule_ == Rule::double_buffered) return is_root(layer);
  return rule_ == Rule::queued && context_.engine().keeps_root_gathered && is_root(layer);
}

bool ParameterGathers::kept_to_backward(const StageLayer& layer) const {
  if (slots_.on()) return kept_over_step(layer);  // two buffers for all units
  if (context_.layout().reshard_after_forward == 0 || kept_over_step(layer)) return true;
  if (rule_ == Rule::limited) return context_.engine().keeps_root_gathered && is_root(layer);
  // Backward starts with the head: it would be gathered again at once.
  return rule_ == Rule::copied &&
         context_.memories[static_cast<std::size_t>(layer.kind)].role == LayerRole::head;
}

bool ParameterGathers::released_after(const LayerTurn& turn) const {
  if (turn.pass.part == LayerPart::forward) return !kept_to_backward(turn.layer());
  if (waits_for_end(turn)) return false;
  return !kept_over_step(turn.layer()) ||
         context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch);
}

/// FSDP1 lets go of a unit when its gradients arrive: one that has none waits for the last layer.
bool ParameterGathers::waits_for_end(const LayerTurn& turn) const {
  return rule_ == Rule::limited && units_.of(turn.layer()).sizes.trained() == 0 &&
         turn.at + 1 < turn.order.size();
}

void ParameterGathers::release_waiting(const LayerTurn& turn, OperationLists& lists) {
  if (turn.pass.part == LayerPart::forward || turn.at + 1 < turn.order.size()) return;
  for (const std::size_t slot : turn.slots) {
    Held& held = held_[slot];
    if (!held.waits) continue;
    lists.frees.push_back(held.unsharded);
    held = {.outer = held.outer};
  }
}

OpId ParameterGathers::issue_outer(const LayerTurn& turn, std::size_t at, bool routed,
                                   std::int32_t cost) {
  if (cost < 0) return kNone;
  ProgramOp op;
  op.role = OpRole::gather_outer;
  op.stream = Stream::all_gather;
  op.routed = routed;
  op.layer = turn.order[at].layer;
  op.chunk = turn.pass.chunk;
  op.cost = cost;
  return builder_.add(op);
}

/// The operation after which a unit's buffer is free, for engines whose units take turns.
OpId ParameterGathers::turn_of_buffer(Held& held) {
  held.number = static_cast<std::int64_t>(users_.size());
  users_.push_back(kNone);
  return held.number >= 2 ? users_[static_cast<std::size_t>(held.number - 2)] : kNone;
}

void ParameterGathers::issue(const LayerTurn& turn, std::size_t at) {
  const StageLayer& layer = turn.order[at];
  Held& held = held_[turn.slots[at]];
  const UnitWork& unit = units_.of(layer);
  if (held.whole || !moves(unit.costs)) return;
  held.whole = true;
  held.used = false;
  held.copied = false;
  ahead_ += unit.sizes.elements();

  std::array<OpId, 2> outer = {kNone, kNone};
  if (!held.outer) {
    held.outer = true;
    outer = {issue_outer(turn, at, false, unit.costs.dense.gather_outer),
             issue_outer(turn, at, true, unit.costs.routed.gather_outer)};
  }
  OpId gate = gate_;
  if (rule_ == Rule::queued) gate = builder_.last(Stream::compute);
  const bool takes_turns = rule_ == Rule::limited || rule_ == Rule::double_buffered;
  if (takes_turns && !kept_to_backward(layer)) gate = turn_of_buffer(held);

  const std::int64_t bytes = unit.sizes.elements() * context_.memory_rules.weight_bytes;
  const bool own_buffer = !slots_.on() && (rule_ != Rule::double_buffered || kept_over_step(layer));
  const bool inner = unit.costs.dense.gather >= 0 || unit.costs.routed.gather >= 0;
  BufferId made = own_buffer && inner
                      ? builder_.buffer(kGathered, bytes, layer.layer, turn.pass.microbatch)
                      : kNone;
  const BufferId into = slots_.on() ? slots_.gathered(layer, turn.slots[at], held.number) : made;
  (rule_ == Rule::copied ? held.output : held.unsharded) = into;

  ProgramOp op;
  op.stream = Stream::all_gather;
  op.pass = pass_of(turn);
  op.chunk = turn.pass.chunk;
  op.layer = layer.layer;
  op.microbatch = turn.pass.microbatch;
  OpId cast = kNone;
  BufferId shard = kNone;
  const bool again = held.part != kNone;  // parts in the dtype that travels
  if (unit.costs.cast >= 0 && !again) {
    const std::int64_t ranks = context_.shards.dense;
    shard = builder_.buffer(
        kGathered,
        (unit.sizes.padded_dense + unit.sizes.padded_frozen) / ranks *
                context_.memory_rules.weight_bytes +
            unit.sizes.padded_routed / context_.shards.routed * context_.memory_rules.weight_bytes,
        layer.layer, turn.pass.microbatch);
    op.role = OpRole::cast;
    op.stream = Stream::copy;
    op.cost = unit.costs.cast;
    cast = builder_.add(op, {gate, outer[0], outer[1]}, {shard});
    builder_.lies_in(cast, OperandPart::cast_weights, shard);
    op.stream = Stream::all_gather;
  }
  op.role = OpRole::gather;
  const std::array<std::int32_t, 2> costs = {
      again ? unit.costs.dense.gather_again : unit.costs.dense.gather, unit.costs.routed.gather};
  const int last = costs[1] >= 0 ? 1 : 0;
  for (int i = 0; i < 2; ++i) {
    const auto which = static_cast<std::size_t>(i);
    held.ready[which] = outer[which];
    if (costs[which] < 0) continue;
    op.routed = i == 1;
    op.cost = costs[which];
    const bool touched = slots_.on() ? slots_.unmade(into) == kNone : made == kNone;
    held.ready[which] = builder_.add(
        op,
        {gate, cast, outer[which], again ? held.resharded : order_.before_gather(op.routed),
         slots_.on() ? slots_.last(into) : kNone},
        {slots_.on() ? slots_.unmade(into) : made, make_double_buffers()},
        {i == last ? shard : kNone},
        {touched ? into : kNone, i == last ? kNone : shard, held.part});
    builder_.lies_in(held.ready[which], OperandPart::gathered_weights, into);
    made = kNone;
    if (slots_.on()) slots_.touch(into, held.ready[which]);
    // Smaller groups have communicators of their own.
    if (!again) order_.gathered(op.routed, held.ready[which]);
  }
}

/// FSDP2: forward keeps a gather's output until the next unit is copied out, so that the gather
/// after that one waits for the copy before; backward lets go at once.
void ParameterGathers::copy_out(const LayerTurn& turn, Held& held) {
  const UnitWork& unit = units_.of(turn.layer());
  if (rule_ != Rule::copied || held.copied || !held.whole || unit.costs.copy_out < 0) return;
  held.copied = true;
  held.unsharded =
      builder_.buffer(kGathered, unit.sizes.elements() * context_.memory_rules.weight_bytes,
                      turn.layer().layer, turn.pass.microbatch);
  const bool forward = turn.pass.part == LayerPart::forward;
  ProgramOp op;
  op.role = OpRole::copy_out;
  op.stream = Stream::compute;
  op.pass = pass_of(turn);
  op.chunk = turn.pass.chunk;
  op.layer = turn.layer().layer;
  op.microbatch = turn.pass.microbatch;
  op.cost = unit.costs.copy_out;
  if (forward) gate_ = last_copy_;
  const OpId copy = builder_.add(op, {held.ready[0], held.ready[1]}, {held.unsharded},
                                 {forward ? last_output_ : held.output, held.part},
                                 {forward ? held.output : kNone});
  builder_.lies_in(copy, OperandPart::gathered_weights, held.unsharded);
  held.part = kNone;
  held.resharded = kNone;
  if (forward) {
    last_copy_ = copy;
    last_output_ = held.output;
  } else {
    gate_ = copy;
  }
  held.output = kNone;
  held.ready = {copy, kNone};
}

/// Whether a rank keeps a part of what it gathered for forward, more than its shard.
bool ParameterGathers::reshards_after(const LayerTurn& turn) const {
  return rule_ == Rule::copied && context_.layout().reshards_to_groups() &&
         turn.pass.part == LayerPart::forward && released_after(turn);
}

/// FSDP2 clones the part from the gathered weights after the layer's forward hook.
void ParameterGathers::reshard(const LayerTurn& turn, Held& held, OpId op) {
  const UnitWork& unit = units_.of(turn.layer());
  held.part = builder_.buffer(kGathered,
                              unit.sizes.padded_dense / context_.layout().reshard_after_forward *
                                  context_.memory_rules.weight_bytes,
                              turn.layer().layer, turn.pass.microbatch);
  ProgramOp kept;
  kept.role = OpRole::reshard;
  kept.stream = Stream::compute;
  kept.pass = Pass::forward;
  kept.chunk = turn.pass.chunk;
  kept.layer = turn.layer().layer;
  kept.microbatch = turn.pass.microbatch;
  kept.cost = unit.costs.reshard;
  held.resharded = builder_.add(kept, {op}, {held.part}, {held.unsharded});
  builder_.lies_in(held.resharded, OperandPart::weights_part, held.part);
}

void ParameterGathers::prefetch(const LayerTurn& turn) {
  const bool forward = turn.pass.part == LayerPart::forward;
  if (rule_ == Rule::queued) {
    const std::int64_t capacity = context_.engine().gather_queue_elements;
    for (std::size_t next = turn.at + 1; next < turn.order.size() && ahead_ < capacity; ++next) {
      issue(turn, next);
    }
    return;
  }
  // The host of FSDP1 and FSDP2 runs ahead forward: gathers are issued with their own units.
  if (forward && rule_ != Rule::double_buffered) return;
  if (turn.at + 1 < turn.order.size()) issue(turn, turn.at + 1);
}

void ParameterGathers::before(const LayerTurn& turn, OperationLists& lists) {
  if (turn.last) lists.frees.push_back(double_buffers_);
  if (!turn.needs_weights()) return;
  release_waiting(turn, lists);
  Held& held = held_[turn.slot()];
  issue(turn, turn.at);
  if (!held.whole) return;
  if (!held.used) ahead_ -= units_.of(turn.layer()).sizes.elements();
  held.used = true;
  copy_out(turn, held);
  prefetch(turn);
  // The root's forward hook lets go of the last output.
  if (turn.pass.part == LayerPart::forward && turn.at + 1 == turn.order.size()) {
    lists.frees.push_back(last_output_);
    last_output_ = kNone;
  }
  lists.waits.insert(lists.waits.end(), held.ready.begin(), held.ready.end());
  const bool frees = !slots_.on() && released_after(turn) && !reshards_after(turn);
  (frees ? lists.frees : lists.uses).push_back(held.unsharded);
}

void ParameterGathers::after(const LayerTurn& turn, OpId op) {
  if (!turn.needs_weights()) return;
  Held& held = held_[turn.slot()];
  if (held.whole && slots_.on()) slots_.touch(held.unsharded, op);
  held.waits = held.whole && turn.pass.part != LayerPart::forward && waits_for_end(turn);
  if (!held.whole || !released_after(turn)) return;
  if (reshards_after(turn)) reshard(turn, held, op);
  if (held.number >= 0) users_[static_cast<std::size_t>(held.number)] = op;
  held.number = -1;
  held.whole = false;
  held.copied = false;
  held.unsharded = kNone;
}

}  // namespace shardwise
