#include "planner/cost/step/pass_streams.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/cost/memory/unit_queues.h"
#include "planner/cost/step/slowed_layer.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {

PassStreams::PassStreams(const StageTimes& stages, const LeafContext& context,
                         const PassLosses& losses)
    : rules_(stream_rules(context)),
      losses_(losses),
      hosts_(stages.pipeline, host_rules(context, stages.hop)) {
  const PipelineTimes& pipeline = stages.pipeline;
  const HostRules host = host_rules(context, stages.hop);
  const auto add = [&](const LayerPace& layer) {
    units_.push_back(pass_unit(rules_, context, layer, host));
    const Unit& unit = units_.back();
    moves_ = moves_ || unit.gathers || unit.reduces || unit.reduce_outer > 0;
  };
  for (const LayerPace& layer : pipeline.layers) add(taken(layer));
  std::vector<std::int32_t> left;  // by kind: the unit of layers that recompute leaves alone
  for (const LayerPace& layer : pipeline.layers) {
    left.push_back(static_cast<std::int32_t>(units_.size()));
    if (layer.memory->recompute_interval > 1) add(left_alone(layer));
  }
  per_stage_ = static_cast<std::size_t>(pipeline.slots->chunks);
  stages_.resize(static_cast<std::size_t>(pipeline.slots->stages));
  std::size_t layers = 0;
  for (std::size_t place = 0; place < pipeline.chunk_time.size(); ++place) {
    base_.push_back(layers);
    std::vector<std::int32_t>& kinds = kinds_.emplace_back();
    std::int32_t before = -1;  // kind of the run before, of which this one may be a part
    std::int32_t number = 0;
    for (const PacedRun& run : pipeline.runs_of(place)) {
      const auto kind = static_cast<std::size_t>(run.kind);
      const std::int32_t interval = pipeline.layers[kind].memory->recompute_interval;
      if (std::exchange(before, run.kind) != run.kind) number = 0;
      for (std::int32_t i = 0; i < run.layers; ++i) {
        kinds.push_back(number++ % interval == 0 ? run.kind : left[kind]);
      }
    }
    layers += kinds.size();
  }
  set_capacities(pipeline, context);
  held_.resize(layers);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  longer_.assign(layers, {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, kUnknown});
}

void PassStreams::set_capacities(const PipelineTimes& pipeline, const LeafContext& context) {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    MeanUnit mean;
    for (std::size_t place = stage * per_stage_; place < (stage + 1) * per_stage_; ++place) {
      for (const PacedRun& run : pipeline.runs_of(place)) {
        mean.add(*pipeline.layers[static_cast<std::size_t>(run.kind)].memory, run.layers);
      }
    }
    const QueueCapacity capacity =
        queue_capacity(*context.rules->engine, *context.layout, mean.elements());
    stages_[stage].capacity = static_cast<double>(capacity.gathers);
    stages_[stage].reduce_capacity =
        context.layout->double_buffer ? 1 : static_cast<double>(capacity.reductions);
  }
}

/// The gather of a layer of the pass, in the order in which the host issues it.
void PassStreams::issue(const Turn& turn, std::size_t at) {
  const Unit& u = unit(turn, at);
  Held& h = held(turn, at);
  if (h.whole || !u.gathers) return;
  Stage& s = *turn.stage;
  h.whole = true;
  h.used = h.copied = h.turns = false;
  s.ahead += u.elements;
  double gate = s.gate;
  if (rules_.gather == StreamRules::Gather::queued) gate = s.compute;
  const bool takes_turns = rules_.gather == StreamRules::Gather::limited ||
                           rules_.gather == StreamRules::Gather::double_buffered;
  if (takes_turns && !u.kept_to_backward) {
    h.turns = true;
    h.number = s.used++;
    s.user(h.number) = 0;
    gate = h.number >= 2 ? s.user(h.number - 2) : 0;
  }
  if (!h.outer && u.gather_outer > 0) {
    h.outer = true;
    s.gather = std::max(s.gather, turn.issuer->add(u.outers)) + u.gather_outer;
    gate = std::max(gate, s.gather);
  }
  if (h.part) {  // a smaller group has a communicator of its own
    s.gather = h.ready = std::max({gate, h.ready, s.gather, turn.issuer->add()}) + u.gather_again;
    h.part = rules_.keeps_parts;
    return;
  }
  if (u.cast > 0) gate = s.cast = std::max({gate, s.cast, turn.issuer->add()}) + u.cast;
  for (std::size_t i = 0; i < 2; ++i) {
    if (u.gather[i] <= 0) continue;
    const double before = rules_.shared ? s.reduced[i] : 0;
    s.gather = s.gathered[i] = std::max({gate, before, s.gather, turn.issuer->add()}) + u.gather[i];
  }
  h.ready = s.gather;
}

/// \returns when the weights of the layer are there
double PassStreams::weights(const Turn& turn) {
  const Unit& u = unit(turn);
  Held& h = held(turn);
  Stage& s = *turn.stage;
  issue(turn, turn.at);
  if (turn.forward && !h.begun && h.buckets > 0) h.ready = updated(s, *turn.issuer, h);
  // What the first layer gathered for a head as well is there.
  if (!h.whole && !u.begins_root) return u.gathers ? 0 : h.ready;
  if (h.whole && !h.used) s.ahead -= u.elements;
  h.used = true;
  if (rules_.gather == StreamRules::Gather::copied && !h.copied && u.copy_out > 0) {
    h.copied = true;
    if (turn.forward) s.gate = s.last_copy;
    s.compute = h.ready = std::max({s.compute, h.ready, turn.issuer->add()}) + u.copy_out;
    (turn.forward ? s.last_copy : s.gate) = s.compute;
  }
  const std::size_t layers = turn.kinds.size();
  if (rules_.gather == StreamRules::Gather::queued) {
    for (std::size_t next = turn.at + 1; next < layers && s.ahead < s.capacity; ++next) {
      issue(turn, next);
    }
  } else if ((!turn.forward || rules_.gather == StreamRules::Gather::double_buffered) &&
             turn.at + 1 < layers) {
    issue(turn, turn.at + 1);
  }
  return h.ready;
}

/// When gradients of the layer have a place: a queue of reductions keeps no more than its capacity
/// beside the layer before, and has one place for each; in an arena the blocks take turns with
/// two buffers, embedding and head with a third, all have where they wait for the last micro-batch.
double PassStreams::room(const Turn& turn) {
  Stage& s = *turn.stage;
  if (rules_.planned) {
    if (!rules_.every) return 0;
    return unit(turn).root ? s.staged_root : s.staged[s.turns % 2];
  }
  double ready = 0;
  std::size_t queued = held(turn).queued;
  if (unit(turn).begins_root) queued = std::max(queued, held_[turn.base].queued);
  auto next = s.pending.begin();
  for (; next != s.pending.end() &&
         (queued > s.waited || s.pending_elements - s.pending.back().elements > s.reduce_capacity);
       ++next) {
    ready = std::max(ready, next->end);
    s.pending_elements -= next->elements;
    ++s.waited;
  }
  s.pending.erase(s.pending.begin(), next);
  return ready;
}

void PassStreams::reduce(const Turn& turn, double made) {
  const Unit& u = unit(turn);
  Held& h = held(turn);
  Stage& s = *turn.stage;
  if (u.copy_in > 0) {
    const double before = rules_.waits_to_copy ? s.last_reduced : 0;
    s.compute = std::max({made, before, turn.issuer->add()}) + u.copy_in;
    made = s.compute;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (u.reduce[i] <= 0) continue;
    const double before = rules_.shared ? s.gathered[i] : 0;
    s.reduce = s.reduced[i] = std::max({made, before, s.reduce, turn.issuer->add()}) + u.reduce[i];
  }
  if (u.reduces) s.last_reduced = s.reduce;
  if (u.reduces && rules_.accumulates && (h.accumulated || !rules_.copies)) {
    s.reduce = std::max(s.reduce, turn.issuer->add()) + u.accumulate;
  }
  h.accumulated = true;
  if (u.reduces && !rules_.copies && !rules_.planned) {
    s.pending.push_back({s.reduce, u.trained});
    s.pending_elements += u.trained;
    h.queued = s.waited + s.pending.size();
  }
  if (u.reduces) {
    (u.root ? s.staged_root : s.staged[s.turns++ % 2]) = s.reduce;
  }
  if (reduces_outer_after(turn.slot->last) && u.reduce_outer > 0) {
    const double reduced = u.reduces ? s.reduce : 0;
    s.outer = std::max({s.outer, made, reduced, turn.issuer->add(u.outers)}) + u.reduce_outer;
  }
}

/// What of the pass is reduced once this layer has made its gradients: its own; of a root whose
/// layers wait for one another, all with the last one.
void PassStreams::reduce_ready(const Turn& turn, double made) {
  if (!rules_.joins_roots || !unit(turn).root) return reduce(turn, made);
  if (turn.at + 1 < turn.kinds.size()) return;
  Turn each = turn;
  for (each.at = 0; each.at < turn.kinds.size(); ++each.at) {
    each.index = index(turn, each.at);
    if (unit(each).root) reduce(each, made);
  }
}

/// What of a layer's seconds comes from collectives beside it.
double PassStreams::longer(const Turn& turn, LayerPart part) {
  if (buckets_ && !turn.forward) {
    const Stage& s = *turn.stage;
    const double alone = unit(turn).compute.of(part).value();
    return losses_.backward.slowed(alone, std::max(0.0, s.reduce - s.compute),
                                   std::max(0.0, s.outer - s.compute)) -
           alone;
  }
  if (part == LayerPart::backward_weight || !moves_) return 0;
  const bool first = turn.forward && !held(turn).begun;
  const bool last = turn.slot->last;
  const std::size_t which =
      turn.forward ? (first ? 0 : 1)
                   : 2 + (part == LayerPart::backward_input ? 2U : 0U) + (last ? 1U : 0U);
  double& known = longer_[turn.base + turn.index][which];
  if (std::isnan(known)) {
    const Unit& u = unit(turn);
    const bool has_next = turn.at + 1 < turn.kinds.size();
    known = slowed_layer(rules_, losses_, u,
                         {part, first, last, has_next ? &unit(turn, turn.at + 1) : nullptr,
                          turn.at > 0 ? &unit(turn, turn.at - 1) : nullptr}) -
            u.compute.of(part).value();
  }
  return known;
}

/// \returns the end of the layer's own operation
double PassStreams::layer(const Turn& turn, double ready, ChunkSpan& span) {
  const Unit& u = unit(turn);
  Stage& s = *turn.stage;
  // A layer without weight products has nothing to put off.
  LayerPart part = turn.slot->part;
  if (part == LayerPart::backward_input && u.compute.weight_gradient <= Seconds(0)) {
    part = LayerPart::backward;
  }
  const bool gradients = part == LayerPart::backward || part == LayerPart::backward_weight;
  const bool offloads = u.host > 0;
  if (offloads && turn.forward) ready = std::max(ready, s.places.free());
  if (offloads && !turn.forward) {
    s.host = std::max({s.host, s.places.free(), turn.issuer->add()}) + u.host;
    ready = std::max(ready, s.host);
  }
  if (part != LayerPart::backward_weight) ready = std::max(ready, weights(turn));
  if (gradients && (u.reduces || u.begins_root)) ready = std::max(ready, room(turn));
  const double begin = s.compute = std::max(s.compute, ready);
  if (turn.slot->first && turn.at == 0) span.begin = Seconds(std::max(begin, turn.issuer->next()));
  Held& h = held(turn);
  const double end = s.compute = turn.issuer->run(u.issued.of(part), begin, longer(turn, part));
  h.begun = true;
  if (part != LayerPart::backward_weight) {
    if (h.whole && u.released(turn.forward)) {
      // FSDP1 frees a unit without gradients with the last layer: no later gather waits for that.
      const bool with_last = rules_.gather == StreamRules::Gather::limited && !turn.forward &&
                             u.trained == 0 && turn.at + 1 < turn.kinds.size();
      if (h.turns && !with_last) s.user(h.number) = end;
      h.whole = false;
      const bool copied = rules_.gather == StreamRules::Gather::copied;
      if (turn.forward && rules_.to_groups && (rules_.keeps_parts || copied) && !h.part) {
        s.compute = h.ready = std::max(end, turn.issuer->add()) + u.reshard;
        h.part = true;
      }
    }
  }
  if (gradients && (rules_.every || turn.slot->last)) {
    reduce_ready(turn, end);
    if (rules_.buckets_beside) dispatch(s, *turn.issuer, h, turn.slot->last);
  }
  if (offloads && turn.forward) s.host = std::max({s.host, end, turn.issuer->add()}) + u.host;
  if (offloads) s.places.take(turn.forward ? s.host : end);
  return end;
}

/// In one piece: calls between the parts of a layer take a fifth as long again.
[[gnu::flatten]] double PassStreams::pass(const PipelineSlots::Slot& slot, PassTurn& handed,
                                          ChunkSpan& span) {
  const auto stage = static_cast<std::size_t>(slot.stage);
  const std::size_t place = stage * per_stage_ + static_cast<std::size_t>(slot.chunk);
  Turn turn;
  turn.stage = &stages_[stage];
  turn.issuer = &hosts_.of(slot.stage);
  if (turn.stage->there.empty()) issue_updated(*turn.stage, *turn.issuer);
  hosts_.receive(slot, handed);
  turn.slot = &slot;
  turn.forward = slot.part == LayerPart::forward;
  turn.kinds = kinds_[place];
  turn.base = base_[place];
  double end = std::max(handed.ready, turn.stage->compute);
  for (turn.at = 0; turn.at < turn.kinds.size(); ++turn.at) {
    turn.index = index(turn, turn.at);
    const bool skips =
        slot.part == LayerPart::backward_weight && unit(turn).compute.weight_gradient <= Seconds(0);
    if (skips) continue;
    const double ready = turn.at == 0 ? handed.ready : 0;
    const double room = turn.at + 1 == turn.kinds.size() ? handed.room : 0;
    end = layer(turn, std::max(ready, room), span);
    if (turn.at == 0) handed.read = end;
  }
  hosts_.post(slot);
  return end;
}

void PassStreams::visit(StateVisit& state) {
  for (Stage& s : stages_) {
    for (double* clock : {&s.compute, &s.gather, &s.reduce, &s.outer, &s.cast, &s.host, &s.gate,
                          &s.last_copy, &s.last_reduced, &s.staged_root}) {
      state.clock(*clock);
    }
    s.places.visit(state);
    for (std::size_t i = 0; i < 2; ++i) {
      state.clock(s.gathered[i]);
      state.clock(s.reduced[i]);
      state.clock(s.user(s.used + i - 2));
      state.clock(s.staged[(s.turns + i) % 2]);
    }
    for (Pending& each : s.pending) {
      state.clock(each.end);
      state.mark(each.elements);
    }
    for (double& there : s.there) state.clock(there);
    state.mark(s.ahead);
    state.mark(s.pending_elements);
    state.mark(s.due);
  }
  for (std::size_t place = 0; place < base_.size(); ++place) {
    const Stage& s = stages_[place / per_stage_];
    for (std::size_t i = 0; i < kinds_[place].size(); ++i) {
      Held& h = held_[base_[place] + i];
      state.clock(h.ready);
      state.mark(h.flags());
      state.mark(static_cast<double>(h.queued - std::min(h.queued, s.waited)));
      state.mark(h.turns && h.whole ? static_cast<double>(s.used - h.number) : 0);
    }
  }
}

Seconds PassStreams::end() const { return Seconds(std::ranges::max(ends())); }

std::vector<double> PassStreams::ends() const {
  std::vector<double> ends;
  ends.reserve(stages_.size());
  for (const Stage& s : stages_) ends.push_back(std::max({s.compute, s.reduce, s.outer}));
  return ends;
}

}  // namespace shardwise
