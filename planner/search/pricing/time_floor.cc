#include "planner/search/pricing/time_floor.h"

#include <algorithm>
#include <vector>

#include "planner/cost/step/pipeline_times.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// What layers take for one micro-batch.
struct Passes {
  Seconds forward;
  Seconds backward;
};

/// \param of  what one layer takes
template <class Of>
Seconds floor_of(std::span<const LayerTime> times, std::span<const StageLayers> stages,
                 const Layout& layout, std::int64_t num_microbatches, Of of) {
  std::vector<Passes> layers;  // by kind
  layers.reserve(times.size());
  for (const LayerTime& time : times) layers.push_back(of(time));
  const auto m = static_cast<double>(num_microbatches);
  Seconds before;
  Seconds floor;
  for (const StageLayers& stage : stages) {
    Seconds all;
    Passes first;  // chunk
    for (const StageRun& run : stage.runs) {
      const Passes& layer = layers[static_cast<std::size_t>(run.kind)];
      all += (layer.forward + layer.backward) * run.layers;
      if (run.chunk > 0) continue;
      first.forward += layer.forward * run.layers;
      first.backward += layer.backward * run.layers;
    }
    floor = std::max(floor, before + all * m);
    before += first.forward;
    if (!facts_of(layout.schedule).splits_backward) before += first.backward;
  }
  return floor;
}

}  // namespace

Seconds time_floor(std::span<const LayerTime> times, std::span<const StageLayers> stages,
                   const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches) {
  if (rules.expert_overlap || facts_of(layout).pairs_passes) return Seconds(0);
  return floor_of(times, stages, layout, num_microbatches, [](const LayerTime& layer) {
    return Passes{layer.forward.compute(), layer.backward.compute() + layer.recompute.compute()};
  });
}

Seconds stream_floor(std::span<const LayerTime> times, std::span<const StageLayers> stages,
                     const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches) {
  if (facts_of(layout).pairs_passes) return Seconds(0);
  return floor_of(times, stages, layout, num_microbatches, [&](const LayerTime& layer) {
    const Seconds hidden = hidden_exchange(layer, rules, layout);
    const Seconds experts = layer.forward.ep + layer.backward.ep + layer.recompute.ep;
    const double of_forward = hidden > Seconds(0) ? layer.forward.ep / experts : 0;
    return Passes{layer.forward.stream() - hidden * of_forward,
                  layer.backward.stream() + layer.recompute.stream() - hidden * (1 - of_forward)};
  });
}

}  // namespace shardwise
