#include "planner/lowering/data_parallel/parameter_gathers.h"

#include "planner/cost/memory/stage_buffers.h"
#include "planner/schedule/gathers_once.h"

namespace shardwise {
namespace {

constexpr auto kGathered = MemoryCategory::gathered_weights;

Pass pass_of(const LayerTurn& turn) {
  return turn.pass.part == LayerPart::forward ? Pass::forward : Pass::backward;
}

bool is_gathered(const UnitCosts& costs) {
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
      stage_units_(context, stage, units),
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
  const StageParts parts = stage_parts(context.plan->model, context.memories,
                                       context.stages[static_cast<std::size_t>(stage)]);
  stays_ = keeps_buffers_between_steps(context.memory_rules);
  capacity_ = queue_capacity(context.engine(), context.layout(), mean_unit(parts)).gathers;
  held_.resize(stage_units_.size());
}

/// The two buffers that units take turns with, made by the first gather.
BufferId ParameterGathers::make_double_buffers() {
  if (rule_ != Rule::double_buffered || slots_.on() || double_buffers_ != kNone) return kNone;
  const StageParts parts = stage_parts(context_.plan->model, context_.memories,
                                       context_.stages[static_cast<std::size_t>(stage_)]);
  const StageBuffers buffers = stage_buffers(parts, context_.of_stage(stage_));
  if (stays_ && !context_.first_step) return kNone;
  const std::int64_t bytes = buffers.queue.bytes(context_.memory_rules);
  double_buffers_ = stays_ ? builder_.lasting(kGathered, bytes) : builder_.buffer(kGathered, bytes);
  return double_buffers_;
}

bool ParameterGathers::is_root(const StageLayer& layer) const {
  if (slots_.on()) return slots_.is_root(layer);
  const LayerRole role = context_.memories[static_cast<std::size_t>(layer.kind)].role;
  return role == LayerRole::embedding || role == LayerRole::head;
}

bool ParameterGathers::kept_over_step(const StageLayer& layer, const LayerUnit& unit) const {
  if (gathers_once(context_.layout(), context_.engine())) return true;
  const bool root = unit.part >= 0 || is_root(layer);
  if (rule_ == Rule::double_buffered) return root;
  return rule_ == Rule::queued && context_.engine().keeps_root_gathered && root;
}

bool ParameterGathers::kept_to_backward(const StageLayer& layer, const LayerUnit& unit) const {
  if (slots_.on()) return kept_over_step(layer, unit);  // two buffers for all units
  if (context_.layout().reshard_after_forward == 0 || kept_over_step(layer, unit)) return true;
  if (rule_ == Rule::limited) return context_.engine().keeps_root_gathered && is_root(layer);
  // Backward starts with the head: it would be gathered again at once. A table that it works with
  // is the root's, which stays.
  return rule_ == Rule::copied &&
         (layer.tied_to_head ||
          context_.memories[static_cast<std::size_t>(layer.kind)].role == LayerRole::head);
}

bool ParameterGathers::released_after(const LayerTurn& turn, const LayerUnit& unit) const {
  if (turn.pass.part == LayerPart::forward) return !kept_to_backward(turn.layer(), unit);
  if (waits_for_end(turn) || !unit.completes) return false;
  const bool last = context_.last_microbatch(turn.pass.chunk, turn.pass.microbatch);
  return !kept_over_step(turn.layer(), unit) || (last && !stays_);
}

/// FSDP1 lets go of a unit when its gradients arrive or, where none is trained, that of its input:
/// the root's are token numbers, so that it waits for the last layer.
bool ParameterGathers::waits_for_end(const LayerTurn& turn) const {
  return rule_ == Rule::limited && units_.of(turn.layer()).sizes.trained() == 0 &&
         context_.engine().keeps_root_gathered && is_root(turn.layer()) &&
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

OpId ParameterGathers::issue_outer(const LayerTurn& turn, std::size_t at, const LayerUnit& unit,
                                   bool routed, std::int32_t cost) {
  if (cost < 0) return kNone;
  ProgramOp op;
  op.role = OpRole::gather_outer;
  op.stream = Stream::all_gather;
  op.routed = routed;
  op.layer = turn.order[at].layer;
  op.part = unit.part;
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
  for (const LayerUnit& each : stage_units_.of(turn.slots[at])) issue(turn, at, each);
}

void ParameterGathers::issue(const LayerTurn& turn, std::size_t at, const LayerUnit& each) {
  const StageLayer& layer = turn.order[at];
  Held& held = held_[each.number];
  const UnitWork& unit = *each.work;
  if (held.whole || !is_gathered(unit.costs)) return;
  held.whole = true;
  held.used = false;
  held.copied = false;
  ahead_ += unit.sizes.room();

  std::array<OpId, 2> outer = {kNone, kNone};
  if (!held.outer) {
    held.outer = true;
    outer = {issue_outer(turn, at, each, false, unit.costs.dense.gather_outer),
             issue_outer(turn, at, each, true, unit.costs.routed.gather_outer)};
  }
  OpId gate = gate_;
  if (rule_ == Rule::queued) gate = builder_.last(Stream::compute);
  const bool takes_turns = rule_ == Rule::limited || rule_ == Rule::double_buffered;
  if (takes_turns && !kept_to_backward(layer, each)) gate = turn_of_buffer(held);

  const std::int64_t bytes = unit.sizes.room() * context_.memory_rules.weight_bytes;
  const bool over_step = kept_over_step(layer, each);
  const bool lasts = stays_ && over_step;
  const bool own_buffer = !slots_.on() && (rule_ != Rule::double_buffered || over_step) &&
                          (!lasts || context_.first_step);
  const bool inner = unit.costs.dense.gather >= 0 || unit.costs.routed.gather >= 0;
  BufferId made = kNone;
  if (own_buffer && inner) {
    made = lasts ? builder_.lasting(kGathered, bytes)
                 : builder_.buffer(kGathered, bytes, layer.layer, turn.pass.microbatch);
  }
  const BufferId into = slots_.on() ? slots_.gathered(layer, turn.slots[at], held.number) : made;
  (rule_ == Rule::copied ? held.output : held.unsharded) = into;

  ProgramOp op;
  op.stream = Stream::all_gather;
  op.pass = pass_of(turn);
  op.chunk = turn.pass.chunk;
  op.layer = layer.layer;
  op.part = each.part;
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

/// Whether a rank keeps a part of what it gathered for forward, more than its shard, and has none.
bool ParameterGathers::reshards_after(const LayerTurn& turn, const LayerUnit& unit) const {
  const Layout& layout = context_.layout();
  const bool keeps = keeps_parts(layout, context_.engine());
  return layout.reshards_to_groups() && (keeps || rule_ == Rule::copied) &&
         held_[unit.number].part == kNone && turn.pass.part == LayerPart::forward &&
         released_after(turn, unit);
}

/// The part is cloned from the gathered weights after the layer's forward hook.
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

std::vector<BufferId> ParameterGathers::late_buffers() const {
  std::vector<BufferId> parts;
  if (!keeps_parts(context_.layout(), context_.engine())) return parts;
  for (const Held& held : held_) parts.push_back(held.part);
  return parts;
}

void ParameterGathers::prefetch(const LayerTurn& turn) {
  const bool forward = turn.pass.part == LayerPart::forward;
  if (rule_ == Rule::queued) {
    for (std::size_t next = turn.at + 1; next < turn.order.size() && ahead_ < capacity_; ++next) {
      issue(turn, next);
    }
    return;
  }
  // The host of FSDP1 and FSDP2 runs ahead forward: gathers are issued with their own units.
  if (forward && rule_ != Rule::double_buffered) return;
  if (turn.at + 1 < turn.order.size()) issue(turn, turn.at + 1);
}

void ParameterGathers::before(const LayerTurn& turn, OperationLists& lists) {
  if (turn.last && !stays_) lists.frees.push_back(double_buffers_);
  if (!turn.needs_weights()) return;
  release_waiting(turn, lists);
  issue(turn, turn.at);
  const std::span<const LayerUnit> units = stage_units_.of(turn.slot());
  bool gathered = false;
  for (const LayerUnit& unit : units) {
    Held& held = held_[unit.number];
    if (!held.whole) continue;
    gathered = true;
    if (!held.used) ahead_ -= unit.work->sizes.room();
    held.used = true;
  }
  if (!gathered) return;
  copy_out(turn, held_[turn.slot()]);
  prefetch(turn);
  // The root's forward hook lets go of the last output.
  if (turn.pass.part == LayerPart::forward && turn.at + 1 == turn.order.size()) {
    lists.frees.push_back(last_output_);
    last_output_ = kNone;
  }
  for (const LayerUnit& unit : units) {
    const Held& held = held_[unit.number];
    if (!held.whole) continue;
    lists.waits.insert(lists.waits.end(), held.ready.begin(), held.ready.end());
    const bool frees = !slots_.on() && released_after(turn, unit) && !reshards_after(turn, unit);
    (frees ? lists.frees : lists.uses).push_back(held.unsharded);
  }
}

void ParameterGathers::after(const LayerTurn& turn, OpId op) {
  if (!turn.needs_weights()) return;
  for (const LayerUnit& unit : stage_units_.of(turn.slot())) after(turn, unit, op);
}

void ParameterGathers::after(const LayerTurn& turn, const LayerUnit& unit, OpId op) {
  Held& held = held_[unit.number];
  if (held.whole && slots_.on()) slots_.touch(held.unsharded, op);
  held.waits = held.whole && turn.pass.part != LayerPart::forward && waits_for_end(turn);
  if (!held.whole || !released_after(turn, unit)) return;
  if (reshards_after(turn, unit)) reshard(turn, held, op);
  if (held.number >= 0) users_[static_cast<std::size_t>(held.number)] = op;
  held.number = -1;
  held.whole = false;
  held.copied = false;
  held.unsharded = kNone;
}

}  // namespace shardwise
