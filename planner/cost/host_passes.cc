#include "planner/cost/host_passes.h"

#include <algorithm>
#include <span>

namespace shardwise {

HostPasses::HostPasses(const StageTimes& stages, const LeafContext& context, double stretch)
    : pipeline_(stages.pipeline), stages_(static_cast<std::size_t>(pipeline_.slots->stages)) {
  for (const LayerPace& layer : pipeline_.layers) {
    Pace& pace = paces_.emplace_back();
    pace.compute.forward = layer.time.forward * stretch;
    pace.compute.backward = layer.time.backward * stretch;
    pace.compute.weight_gradient = layer.time.weight_gradient * stretch;
    pace.copy = (Bytes(layer.saved) / context.rules->cluster->host_link).value();
  }
}

double HostPasses::pass(const PipelineSlots::Slot& slot, double ready, ChunkSpan& span) {
  const auto at = static_cast<std::size_t>(slot.stage);
  const std::size_t place =
      at * static_cast<std::size_t>(pipeline_.slots->chunks) + static_cast<std::size_t>(slot.chunk);
  const std::span<const PacedRun> runs = pipeline_.runs_of(place);
  Stage& stage = stages_[at];
  double compute = std::max(stage.compute, ready);
  double host = stage.host;
  if (slot.first) span.begin = Seconds(compute);
  const auto layers = [&](const PacedRun& run) {
    const Pace& pace = paces_[static_cast<std::size_t>(run.kind)];
    const double each = pace.compute.of(slot.part).value();
    const double count = run.layers;
    if (slot.part == LayerPart::backward_weight) {
      compute += count * each;
    } else if (slot.part == LayerPart::forward) {
      // A layer's copy begins once it has run and the copy before has ended: the last one ends
      // after all of them, or after the first layer and all copies, or after all layers and a copy.
      const double first = compute + each;
      compute += count * each;
      host = std::max(std::max(host, first) + count * pace.copy, compute + pace.copy);
    } else {
      // The same with a layer that begins once its copy is back.
      const double first = host + pace.copy;
      host += count * pace.copy;
      compute = std::max(std::max(compute, first) + count * each, host + each);
    }
  };
  if (slot.part == LayerPart::forward) {
    for (const PacedRun& run : runs) layers(run);
  } else {
    for (std::size_t r = runs.size(); r-- > 0;) layers(runs[r]);
  }
  stage = {compute, host};
  return compute;
}

}  // namespace shardwise
