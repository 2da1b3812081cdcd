#include "planner/cost/stage_moments.h"

#include <algorithm>

#include "planner/cost/arena_buffers.h"
#include "planner/cost/stage_buffers.h"
#include "planner/spec/units.h"

namespace shardwise {
namespace {

/// What does not depend on the moment.
struct Shared {
  std::int64_t in_flight = 0;
  StageBuffers buffers;
};

PassBytes bytes_with(const Shared& shared, const StageMoment& moment, bool backward,
                     const StageParts& parts, const StageContext& context,
                     const StageStates& states) {
  const PassMemory& pass = pass_of(moment, backward);
  PassBytes b;
  b.activations = pass.kept + parts.tables + saved_before(moment, parts, *context.layout).bytes();
  b.in_flight = shared.in_flight;
  b.loss = pass.loss;
  b.recomputed = pass.recomputed;
  b.working = pass.working();
  b.working += message_buffers(parts, context).bytes();
  b.gathered =
      gathered_weights_at(shared.buffers, parts, context, moment, backward).bytes(*context.rules);
  b.staging = pass.gradients;
  b.staging += staging_at(shared.buffers, context, moment, backward).bytes();
  b.gradients = gradients_made(moment, backward, parts, context, states).bytes();
  return b;
}

/// The sum of bytes_with, less what is the same at every moment.
std::int64_t height_of(const Shared& shared, const StageMoment& moment, bool backward,
                       const StageParts& parts, const StageContext& context,
                       const StageStates& states) {
  std::int64_t height =
      pass_of(moment, backward).peak + saved_before(moment, parts, *context.layout).bytes() +
      gathered_weights_at(shared.buffers, parts, context, moment, backward).bytes(*context.rules) +
      gradients_made(moment, backward, parts, context, states).bytes();
  height += staging_at(shared.buffers, context, moment, backward).bytes();
  return height;
}

}  // namespace

OtherMicroBatches other_micro_batches(const StageParts& parts, const StageContext& context) {
  const Layout& layout = *context.layout;
  OtherMicroBatches others;
  if (layout.pp == 1 || layout.offload_activations) return others;
  const InFlight flight = micro_batches_in_flight(layout, context.stage, context.num_microbatches);
  others.held = {flight.held - 1, ceil_div(parts.saved, flight.chunks)};
  if (layout.schedule == PipelineSchedule::gpipe ||
      layout.schedule == PipelineSchedule::looped_bfs ||
      layout.schedule == PipelineSchedule::zb_h1 || layout.schedule == PipelineSchedule::zb_h2) {
    others.heads = {flight.held / flight.chunks - 1, parts.saved_by_head};
  }
  return others;
}

Amount message_buffers(const StageParts& parts, const StageContext& context) {
  const Layout& layout = *context.layout;
  // A stage still holds the gradient it sent when the next micro-batch runs.
  if (!plans_buffers(*context.rules->engine)) {
    return {context.stage > 0 ? 1 : 0, parts.boundary};
  }
  if (layout.pp == 1) return {};
  const bool loops = chunks_of_stage(layout) > 1;
  const bool from_before = context.stage > 0 || loops;  // forward, and gradients back
  const bool to_next = context.stage + 1 < layout.pp || loops;
  return {kBuffersADirection * 2 * (from_before + to_next), parts.boundary};
}

const PassMemory& pass_of(const StageMoment& moment, bool backward) {
  const LayerMemory& layer = *moment.layer;
  if (moment.whole) return backward ? layer.backward_whole : layer.forward_whole;
  return backward ? layer.backward : layer.forward;
}

SavedBefore saved_before(const StageMoment& moment, const StageParts& parts, const Layout& layout) {
  SavedBefore saved;
  if (layout.offload_activations) {
    // One layer's activations are on their way while another layer runs.
    saved.on_its_way = {1, std::min(moment.saved_before, parts.largest_saved)};
    return saved;
  }
  saved.alike = {moment.alike_before, moment.layer->saved};
  saved.others = {1, moment.saved_before - saved.alike.bytes()};
  return saved;
}

Amount gradients_made(const StageMoment& moment, bool backward, const StageParts& parts,
                      const StageContext& context, const StageStates& states) {
  Amount made = states.late_gradients;
  if (context.num_microbatches > 1) return made;
  const std::int64_t all = parts.dense + parts.routed;
  if (!backward || all == 0) return {0, made.bytes_each};
  made.count = static_cast<std::int64_t>(static_cast<double>(made.count) *
                                         static_cast<double>(moment.ready.elements()) /
                                         static_cast<double>(all));
  return made;
}

PassBytes bytes_at(const StageMoment& moment, bool backward, const StageParts& parts,
                   const StageContext& context, const StageStates& states) {
  return bytes_with({other_micro_batches(parts, context).bytes(), stage_buffers(parts, context)},
                    moment, backward, parts, context, states);
}

FullestMoment fullest_moment(const StageParts& parts, const StageContext& context,
                             const StageStates& states) {
  const Shared shared = {other_micro_batches(parts, context).bytes(),
                         stage_buffers(parts, context)};
  FullestMoment fullest;
  std::int64_t most = -1;
  for (std::int32_t i = 0; i < parts.moments; ++i) {
    const StageMoment& moment = parts.moment[static_cast<std::size_t>(i)];
    for (const bool backward : {false, true}) {
      const std::int64_t height = height_of(shared, moment, backward, parts, context, states);
      if (height <= most) continue;
      most = height;
      fullest.moment = i;
      fullest.backward = backward;
    }
  }
  if (parts.moments == 0) return fullest;
  fullest.bytes = bytes_with(shared, parts.moment[static_cast<std::size_t>(fullest.moment)],
                             fullest.backward, parts, context, states);
  return fullest;
}

}  // namespace shardwise
