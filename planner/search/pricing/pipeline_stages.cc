#include "planner/search/pricing/pipeline_stages.h"

#include <algorithm>

#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Of stages that hold the same layers, the one that holds the activations of most micro-batches is
/// the fullest; on a V, where each holds as many, but more of one chunk the nearer it is to an end,
/// the first or the last of them. The ends of the pipeline are apart: they have other messages.
std::vector<std::int32_t> fullest_stages(const std::vector<StageLayers>& stages,
                                         const Layout& layout, std::int64_t num_microbatches) {
  std::vector<std::int32_t> fullest;
  const bool v = layout.vpp == 1 && chunks_of_stage(layout) > 1;
  const std::int32_t last = layout.pp - 1;
  const auto held = [&](std::int32_t stage) {
    return micro_batches_in_flight(layout, stage, num_microbatches).held;
  };
  const auto alike_inside = [&](std::int32_t a, std::int32_t b) {
    return a > 0 && b > 0 && !(v && (a == last || b == last)) &&
           alike(stages[static_cast<std::size_t>(a)], stages[static_cast<std::size_t>(b)]);
  };
  for (std::int32_t stage = 0; stage <= last; ++stage) {
    const auto same = std::ranges::find_if(
        fullest, [&](std::int32_t other) { return alike_inside(other, stage); });
    const bool next_alike = stage < last && alike_inside(stage, stage + 1);
    if (same == fullest.end() || (v && !next_alike)) {
      fullest.push_back(stage);
    } else if (!v && held(stage) > held(*same)) {
      *same = stage;
    }
  }
  return fullest;
}

}  // namespace

bool alike(const StageLayers& a, const StageLayers& b) {
  return a.runs == b.runs && a.copies_embedding == b.copies_embedding;
}

PipelineStages pipeline_stages(const ModelSpec& model, const Layout& layout,
                               std::int64_t num_microbatches) {
  PipelineStages stages;
  stages.layers = assign_stages(model, layout);
  stages.mixes = stage_mixes(stages.layers);
  stages.fullest = fullest_stages(stages.layers, layout, num_microbatches);
  return stages;
}

}  // namespace shardwise
