#include "planner/cost/step/pipeline_data.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/step/bucket_streams.h"
#include "planner/cost/step/pass_streams.h"
#include "planner/schedule/pipeline_sweep.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

StreamedPasses by_layer(PassStreams& streams, const StageTimes& stages, const LeafContext& context,
                        SlotEnds& ends) {
  StreamedPasses passes;
  passes.run = sweep_pipeline(*stages.pipeline.slots, streams, stages.hop, ends.end, context.stop);
  streams.finish();
  passes.end = streams.end();
  passes.ends = streams.ends();
  return passes;
}

/// Ranks gather the parameters that others have updated: beside the next forward passes, or before
/// them.
enum class Updated : std::uint8_t { here, beside, before };
Updated updated(const LeafContext& context) {
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  if (!context.groups->any || placement.parameters != Placement::replicate ||
      placement.optimizer == Placement::replicate) {
    return Updated::here;
  }
  const bool overlaps =
      layout.overlap_param_gather && context.rules->engine->overlaps_updated_gather;
  return overlaps ? Updated::beside : Updated::before;
}

/// Seconds in which a rank sums the gradients of DualPipe's two copies of `stage`, with the rank
/// that holds the others.
double sum_of_copies(const PipelineTimes& pipeline, const LeafContext& context, std::size_t stage) {
  const double bytes = gradient_bytes(*context.rules, *context.layout) *
                       elements_of_copies(pipeline, context, stage);
  return context.groups->tied_all_reduce(bytes).value();
}

/// When all copies are summed: a stage and its mirror image begin once both have reduced.
/// \param buckets  that are reduced beside the passes, or none
Seconds copies_summed(const PipelineTimes& pipeline, const LeafContext& context,
                      const StreamedPasses& passes, BucketStreams* buckets) {
  const auto chunks = static_cast<std::size_t>(pipeline.slots->chunks);
  std::vector<double> ends = passes.ends;
  ends.resize(static_cast<std::size_t>(pipeline.slots->stages));
  for (std::size_t s = 0; s < ends.size(); ++s) {
    for (std::size_t c = 0; c < chunks; ++c) {
      ends[s] = std::max(ends[s], passes.run.spans[s * chunks + c].end.value());
    }
    if (buckets != nullptr) ends[s] = std::max(ends[s], buckets->reduced(s));
  }
  double summed = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const double both = std::max(ends[s], ends[ends.size() - 1 - s]);
    summed = std::max(summed, both + sum_of_copies(pipeline, context, s));
  }
  return Seconds(summed);
}

bool same_stages(const PipelineTimes& pipeline, std::size_t a, std::size_t b) {
  const auto chunks = static_cast<std::size_t>(pipeline.slots->chunks);
  for (std::size_t c = 0; c < chunks; ++c) {
    if (!std::ranges::equal(pipeline.runs_of(a * chunks + c), pipeline.runs_of(b * chunks + c))) {
      return false;
    }
  }
  return true;
}

/// Whether a stage has the layers of those before and after it, and so ends between them: what is
/// looked for is the latest.
bool between_alike(const PipelineTimes& pipeline, std::size_t stage) {
  const auto stages = static_cast<std::size_t>(pipeline.slots->stages);
  return stage > 1 && stage + 1 < stages && 2 * stage != stages &&
         same_stages(pipeline, stage, stage - 1) && same_stages(pipeline, stage, stage + 1);
}

}  // namespace

bool only_offloads(const LeafContext& context) {
  return context.layout->offload_activations && !reduces_by_unit(context);
}

double elements_of_copies(const PipelineTimes& pipeline, const LeafContext& context,
                          std::size_t stage) {
  const Layout& layout = *context.layout;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, placement.optimizer);
  const auto chunks = static_cast<std::size_t>(pipeline.slots->chunks);
  double elements = 0;
  for (std::size_t place = stage * chunks; place < (stage + 1) * chunks; ++place) {
    for (const PacedRun& run : pipeline.runs_of(place)) {
      const LayerPace& layer = pipeline.layers[static_cast<std::size_t>(run.kind)];
      elements += static_cast<double>(layer.dense * run.layers) / static_cast<double>(ranks.dense);
      elements +=
          static_cast<double>(layer.routed * run.layers) / static_cast<double>(ranks.routed);
    }
  }
  return elements;
}

StreamedPasses streamed_passes(const StageTimes& stages, const LeafContext& context,
                               const StageKernels& kernels, SlotEnds& ends) {
  PassStreams streams(stages, context, pass_losses(kernels.slowest, context));
  return by_layer(streams, stages, context, ends);
}

PipelineData pipeline_data(const StageTimes& stages, const LeafContext& context,
                           const StageKernels& kernels, const IssuedRun& issued,
                           const StreamedPasses* streamed) {
  const PipelineTimes& pipeline = stages.pipeline;
  const Layout& layout = *context.layout;
  const bool streams_beside = streams_beside_passes(context) || issued.late;
  const Updated gathers = updated(context);
  const PassLosses first = pass_losses(kernels.first, context);
  const bool buckets = context.groups->any && !reduces_by_unit(context);
  SlotEnds slot_ends;
  StreamedPasses passes;
  const auto stage_count = static_cast<std::size_t>(pipeline.slots->stages);
  if (streams_beside && (gathers == Updated::beside || buckets)) {
    PassStreams streams(stages, context, pass_losses(kernels.slowest, context));
    BucketStreams all(stages, context, pipeline.run, first);
    for (std::size_t s = 0; s < stage_count; ++s) {
      if (gathers == Updated::beside) all.hold(s, streams);
      if (buckets) all.complete(s, streams);
    }
    passes = by_layer(streams, stages, context, slot_ends);
  } else if (streamed != nullptr) {
    passes = *streamed;
  } else if (streams_beside) {
    passes = streamed_passes(stages, context, kernels, slot_ends);
  } else {  // passes meet nothing but one another and messages
    passes = {issued.run, issued.run.length, {}};
  }
  const bool reduces = buckets && !streams_beside;  // beside passes as long as their chunks
  const bool copies = copies_model(layout);
  if (gathers == Updated::here && !reduces) {
    const Seconds all = copies ? copies_summed(pipeline, context, passes, nullptr) : passes.end;
    return {passes.end, {}, all - passes.end};
  }
  BucketStreams beside(stages, context, passes.run, first);
  const std::size_t last = stage_count - 1;
  double late = 0;
  double slowed = 0;
  double reduced = 0;
  double after = 0;
  for (std::size_t s = 0; s <= last; ++s) {
    if (between_alike(pipeline, s)) continue;
    if (reduces) reduced = std::max(reduced, beside.reduced(s));
    if (gathers == Updated::before) after = std::max(after, beside.gathers(s));
    if (gathers != Updated::beside) continue;
    // Beside the first stage's passes they slow them.
    if (s == 0) slowed = first.forward.to(beside.gathers(s) - beside.late(s), 0);
    if (!streams_beside && !issued.waits) {
      late = std::max({late, beside.late(s), beside.gathers_issued_late(s)});
    }
  }
  if (gathers == Updated::beside && !streams_beside && issued.waits) {
    // A stage gathers no sooner than the one before hands it the first micro-batch, which is late
    // by all of them.
    for (std::size_t s = 0; s <= last; ++s) {
      late += std::max(beside.late(s, late), beside.gathers_issued_late(s));
    }
  }
  const Seconds end = std::max(passes.end, Seconds(reduced));
  const Seconds all =
      copies ? copies_summed(pipeline, context, passes, reduces ? &beside : nullptr) : end;
  return {end + Seconds(late + slowed), Seconds(after), all - end};
}

}  // namespace shardwise
