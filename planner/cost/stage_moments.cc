#include "planner/cost/stage_moments.h"

#include <algorithm>

#include "planner/cost/stage_buffers.h"

namespace shardwise {
namespace {

/// The part of gradients made in backward that exists when `ready` elements of `all` are reduced.
std::int64_t part_of(std::int64_t bytes, std::int64_t ready, std::int64_t all) {
  if (all == 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(ready) /
                                   static_cast<double>(all));
}

/// Activations of the micro-batches that are not running.
std::int64_t other_micro_batches(const StageParts& parts, const StageContext& context) {
  const Layout& layout = *context.layout;
  if (layout.pp == 1 || layout.offload_activations) return 0;
  const InFlight flight = micro_batches_in_flight(layout, context.stage, context.num_microbatches);
  std::int64_t bytes = parts.saved * (flight.held - 1);
  if (flight.chunks > 1) {
    bytes = parts.saved * flight.held / flight.chunks - parts.saved / flight.chunks;
  }
  if (layout.schedule == PipelineSchedule::gpipe) bytes += parts.saved_by_head * (flight.held - 1);
  return bytes;
}

const PassMemory& pass_of(const StageMoment& moment, bool backward) {
  const LayerMemory& layer = *moment.layer;
  if (moment.whole) return backward ? layer.backward_whole : layer.forward_whole;
  return backward ? layer.backward : layer.forward;
}

/// What does not depend on the moment.
struct Shared {
  std::int64_t in_flight = 0;
  StageBuffers buffers;
};

std::int64_t saved_before(const StageMoment& moment, const StageParts& parts,
                          const Layout& layout) {
  // Offloading: one layer's activations are on their way while another layer runs.
  return layout.offload_activations ? std::min(moment.saved_before, parts.largest_saved)
                                    : moment.saved_before;
}

/// Gradients made in backward that exist at the moment.
std::int64_t gradients_at(const StageMoment& moment, bool backward, const StageParts& parts,
                          const StageContext& context, const StageStates& states) {
  if (states.late_gradients == 0 || context.num_microbatches > 1) return states.late_gradients;
  if (!backward) return 0;
  return part_of(states.late_gradients, moment.ready.elements(), parts.dense + parts.routed);
}

PassBytes bytes_with(const Shared& shared, const StageMoment& moment, bool backward,
                     const StageParts& parts, const StageContext& context,
                     const StageStates& states) {
  const PassMemory& pass = pass_of(moment, backward);
  PassBytes b;
  b.activations = pass.kept + parts.tables + saved_before(moment, parts, *context.layout);
  b.in_flight = shared.in_flight;
  b.loss = pass.loss;
  b.recomputed = pass.recomputed;
  b.working = pass.working();
  // A stage still holds the gradient it sent when the next micro-batch runs.
  if (context.stage > 0) b.working += parts.boundary;
  b.gathered = gathered_bytes(shared.buffers, parts, context, moment, backward);
  b.staging = pass.gradients;
  if (backward) b.staging += staging_bytes(shared.buffers, context, moment);
  b.gradients = gradients_at(moment, backward, parts, context, states);
  return b;
}

/// The sum of bytes_with, less what is the same at every moment.
std::int64_t height_of(const Shared& shared, const StageMoment& moment, bool backward,
                       const StageParts& parts, const StageContext& context,
                       const StageStates& states) {
  std::int64_t height = pass_of(moment, backward).peak +
                        saved_before(moment, parts, *context.layout) +
                        gathered_bytes(shared.buffers, parts, context, moment, backward) +
                        gradients_at(moment, backward, parts, context, states);
  if (backward) height += staging_bytes(shared.buffers, context, moment);
  return height;
}

}  // namespace

PassBytes bytes_at(const StageMoment& moment, bool backward, const StageParts& parts,
                   const StageContext& context, const StageStates& states) {
  return bytes_with({other_micro_batches(parts, context), stage_buffers(parts, context)}, moment,
                    backward, parts, context, states);
}

FullestMoment fullest_moment(const StageParts& parts, const StageContext& context,
                             const StageStates& states) {
  const Shared shared = {other_micro_batches(parts, context), stage_buffers(parts, context)};
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
