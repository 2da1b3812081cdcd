#include "planner/cost/pipeline_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "planner/cost/bucket_streams.h"
#include "planner/cost/host_passes.h"
#include "planner/cost/pass_streams.h"

namespace shardwise {
bool only_offloads(const LeafContext& context) {
  return context.layout->offload_activations && !reduces_by_unit(context);
}

StreamedPasses streamed_passes(const StageTimes& stages, const LeafContext& context,
                               const StageKernels& kernels, double stretch, SlotEnds& ends) {
  StreamedPasses passes;
  if (only_offloads(context)) {
    HostPasses beside_host(stages, context, stretch, ends.copied);
    passes.run = sweep_pipeline(*stages.pipeline.slots, beside_host, stages.hop, ends.end);
    passes.end = passes.run.length;
    return passes;
  }
  PassStreams streams(stages, context, pass_losses(kernels.slowest, context), stretch);
  passes.run = sweep_pipeline(*stages.pipeline.slots, streams, stages.hop, ends.end);
  passes.end = streams.end() + passes.run.unswept;
  return passes;
}

PipelineData pipeline_data(const StageTimes& stages, const LeafContext& context,
                           const StageKernels& kernels, double stretch,
                           const StreamedPasses* streamed) {
  const PipelineTimes& pipeline = stages.pipeline;
  const Layout& layout = *context.layout;
  PipelineRun run;
  PipelineData data;
  if (streamed != nullptr) {
    run = streamed->run;
    data.passes = streamed->end;
  } else if (streams_beside_passes(context)) {
    SlotEnds ends;
    StreamedPasses passes = streamed_passes(stages, context, kernels, stretch, ends);
    run = std::move(passes.run);
    data.passes = passes.end;
  } else {
    run = pipeline.run;
    const Seconds longer = pipeline.without_messages * (stretch - 1);
    run.length += longer;
    for (ChunkSpan& span : run.spans) {
      span.begin = span.begin * stretch;
      span.end = span.end * stretch;
    }
    data.passes = run.length;
  }
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const bool whole = placement.parameters == Placement::replicate;
  if (!whole || layout.dp() * layout.cp == 1) return data;
  BucketStreams buckets(stages, context, run.spans, pass_losses(kernels.first, context), stretch);
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
    if (!buckets.gathers_updated()) continue;
    if (layout.overlap_param_gather && context.rules->engine->overlaps_updated_gather) {
      late = std::max(late, buckets.late(s));
    } else {
      after = std::max(after, buckets.gathers(s));
    }
  }
  data.passes = std::max(data.passes, Seconds(reduced)) + Seconds(late);
  data.after = Seconds(after);
  return data;
}

}  // namespace shardwise
