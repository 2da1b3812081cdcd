#include "planner/cost/pipeline_data.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "planner/cost/bucket_streams.h"
#include "planner/cost/host_passes.h"
#include "planner/cost/pass_streams.h"

namespace shardwise {
namespace {

StreamedPasses by_layer(PassStreams& streams, const StageTimes& stages, SlotEnds& ends) {
  StreamedPasses passes;
  passes.run = sweep_pipeline(*stages.pipeline.slots, streams, stages.hop, ends.end);
  passes.end = streams.end() + passes.run.unswept;
  return passes;
}

/// Passes that meet nothing but one another and messages.
StreamedPasses alone(const PipelineTimes& pipeline, double stretch) {
  StreamedPasses passes{pipeline.run, {}};
  passes.run.length += pipeline.without_messages * (stretch - 1);
  for (ChunkSpan& span : passes.run.spans) {
    span.begin = span.begin * stretch;
    span.end = span.end * stretch;
  }
  passes.end = passes.run.length;
  return passes;
}

/// Ranks gather the parameters that others have updated: beside the next forward passes, or before
/// them.
enum class Updated : std::uint8_t { here, beside, before };
Updated updated(const LeafContext& context) {
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  if (layout.dp() * layout.cp == 1 || placement.parameters != Placement::replicate ||
      placement.optimizer == Placement::replicate) {
    return Updated::here;
  }
  const bool overlaps =
      layout.overlap_param_gather && context.rules->engine->overlaps_updated_gather;
  return overlaps ? Updated::beside : Updated::before;
}

}  // namespace

bool only_offloads(const LeafContext& context) {
  return context.layout->offload_activations && !reduces_by_unit(context);
}

StreamedPasses streamed_passes(const StageTimes& stages, const LeafContext& context,
                               const StageKernels& kernels, double stretch, SlotEnds& ends) {
  if (only_offloads(context)) {
    HostPasses beside_host(stages, context, stretch, ends.copied);
    StreamedPasses passes;
    passes.run = sweep_pipeline(*stages.pipeline.slots, beside_host, stages.hop, ends.end);
    passes.end = passes.run.length;
    return passes;
  }
  PassStreams streams(stages, context, pass_losses(kernels.slowest, context), stretch);
  return by_layer(streams, stages, ends);
}

PipelineData pipeline_data(const StageTimes& stages, const LeafContext& context,
                           const StageKernels& kernels, double stretch,
                           const StreamedPasses* streamed) {
  const PipelineTimes& pipeline = stages.pipeline;
  const Layout& layout = *context.layout;
  const bool streams_beside = streams_beside_passes(context);
  const Updated gathers = updated(context);
  const PassLosses first = pass_losses(kernels.first, context);
  SlotEnds slot_ends;
  StreamedPasses passes;
  if (streams_beside && gathers == Updated::beside) {
    PassStreams streams(stages, context, pass_losses(kernels.slowest, context), stretch);
    BucketStreams buckets(stages, context, pipeline.run.spans, first, stretch);
    for (std::int32_t s = 0; s < layout.pp; ++s) buckets.hold(static_cast<std::size_t>(s), streams);
    passes = by_layer(streams, stages, slot_ends);
  } else if (streamed != nullptr) {
    passes = *streamed;
  } else if (streams_beside) {
    passes = streamed_passes(stages, context, kernels, stretch, slot_ends);
  } else {
    passes = alone(pipeline, stretch);
  }
  if (gathers == Updated::here && (layout.dp() * layout.cp == 1 || reduces_by_unit(context))) {
    return {passes.end, {}};
  }
  BucketStreams buckets(stages, context, passes.run.spans, first, stretch);
  // Stages in the middle are alike, and end before the second and after the last one begins.
  const auto last = static_cast<std::size_t>(layout.pp) - 1;
  const std::array<std::size_t, 4> ends = {0, 1, (last + 1) / 2, last};
  double late = 0;
  double reduced = 0;
  double after = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t s = ends[i];
    if (s > last || (i > 0 && s <= ends[i - 1])) continue;
    if (!reduces_by_unit(context)) reduced = std::max(reduced, buckets.reduced(s));
    if (gathers == Updated::before) after = std::max(after, buckets.gathers(s));
    if (gathers != Updated::beside) continue;
    const double waits = buckets.late(s);
    // Beside the first stage's passes they slow them.
    const double slows = s == 0 ? first.forward.to(buckets.gathers(s) - waits, 0) : 0;
    late = std::max(late, (streams_beside ? 0 : waits) + slows);
  }
  return {std::max(passes.end, Seconds(reduced)) + Seconds(late), Seconds(after)};
}

}  // namespace shardwise
