#include "planner/lowering/offloaded_activations.h"

#include <utility>

#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

OffloadedActivations::OffloadedActivations(const LoweringContext& context, std::int64_t room,
                                           StageBuilder& builder)
    : builder_(builder),
      on_(context.layout().offload_activations),
      planned_(plans_buffers(context.engine())),
      room_(room) {}

std::int32_t OffloadedActivations::cost(std::int64_t bytes) {
  for (const auto& [of, number] : costs_) {
    if (of == bytes) return number;
  }
  OpCost cost;
  cost.host_bytes = bytes;
  return costs_.emplace_back(bytes, builder_.cost(cost)).second;
}

OpId OffloadedActivations::left(const Place& place, Stream stream) const {
  if (place.left == kNone) return kNone;
  return builder_.program().operations[place.left].stream == stream ? kNone : place.left;
}

ProgramOp OffloadedActivations::copy(OpRole role, const LayerTurn& turn, std::int64_t bytes) {
  ProgramOp copy;
  copy.role = role;
  copy.stream = Stream::host_copy;
  copy.chunk = turn.pass.chunk;
  copy.layer = turn.layer().layer;
  copy.microbatch = turn.pass.microbatch;
  // Weight gradients that are put off need it a second time.
  if (turn.pass.part == LayerPart::backward_weight) copy.part = 1;
  copy.cost = cost(bytes);
  return copy;
}

void OffloadedActivations::before(const LayerTurn& turn, std::int64_t bytes,
                                  OperationLists& lists) {
  if (planned_ && both_ == kNone) {
    both_ = builder_.buffer(MemoryCategory::activations, room_);
    lists.allocates.push_back(both_);
  }
  if (planned_ && turn.last) lists.frees.push_back(both_);
  if (bytes == 0) return;
  Place& place = next();
  if (!planned_) {
    place.held = builder_.buffer(MemoryCategory::activations, bytes, turn.layer().layer,
                                 turn.pass.microbatch);
  }
  if (turn.pass.part == LayerPart::forward) {
    lists.waits.push_back(left(place, Stream::compute));
    lists.allocates.push_back(place.held);
    return;
  }
  lists.waits.push_back(builder_.add(copy(OpRole::reload, turn, bytes),
                                     {left(place, Stream::host_copy)}, {place.held}));
  lists.frees.push_back(place.held);
}

void OffloadedActivations::after(const LayerTurn& turn, std::int64_t bytes, OpId op) {
  if (!on_ || bytes == 0) return;
  Place& place = next();
  place.left = op;
  if (turn.pass.part == LayerPart::forward) {
    place.left = builder_.add(copy(OpRole::offload, turn, bytes), {op}, {}, {place.held});
  }
  ++turns_;
}

}  // namespace shardwise
