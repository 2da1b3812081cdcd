#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/cost/step/pipeline_path.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/held_passes.h"
#include "planner/schedule/stages.h"
#include "planner/search/pricing/search_memory.h"

namespace shardwise {

/// The stages of a pipeline and those among them that may be the fullest.
struct PipelineStages {
  std::vector<StageLayers> layers;
  std::vector<StageMix> mixes;  // of `layers`
  std::shared_ptr<KnownSchedule> schedule;
  mutable std::shared_ptr<const PipelineSlots> slots;  // of it, from when it is first timed
  mutable KnownPaths paths;                            // of it, and those found since
  std::vector<std::int32_t> fullest;  // of stages alike, the one that holds most micro-batches
  std::vector<std::int32_t> held;     // of `fullest`: numbers of what their states depend on
  std::vector<HeldChoices> passes;    // of `fullest`: what they hold of other micro-batches
};

/// Whether both stages hold the same layers.
bool alike(const StageLayers& a, const StageLayers& b);

/// The layers of the stages and which of them are the fullest.
PipelineStages pipeline_stages(const ModelSpec& model, const Layout& layout,
                               std::int64_t num_microbatches);

}  // namespace shardwise
