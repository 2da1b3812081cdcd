#include "planner/search/time_floor.h"

#include "planner/cost/pipeline.h"

namespace shardwise {

Seconds time_floor(std::span<const LayerTime> times, std::span<const StageMix> mixes,
                   const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches) {
  if (rules.expert_overlap || is_dualpipe(layout.schedule)) return Seconds(0);
  PipelinePace slowest;
  Seconds all;
  for (const StageMix& mix : mixes) {
    PipelinePace stage;
    for (const StageMix::Share& share : mix.shares) {
      const LayerTime& layer = times[static_cast<std::size_t>(share.kind)];
      const double n = share.layers;
      stage.forward += n * layer.forward.compute();
      stage.backward += n * (layer.backward.compute() + layer.recompute.compute());
      stage.weight_gradient += n * layer.weight_gradient;
    }
    const Seconds each = stage.forward + stage.backward;
    all += static_cast<double>(mix.stages) * each;
    if (each > slowest.forward + slowest.backward) slowest = stage;
  }
  slowest.all = all;
  return static_cast<double>(num_microbatches) * (slowest.forward + slowest.backward) +
         pipeline_bubble(layout.schedule, layout.pp, layout.vpp, num_microbatches, slowest);
}

}  // namespace shardwise
