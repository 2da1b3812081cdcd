#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/cost/held_passes.h"
#include "planner/cost/pipeline_path.h"
#include "planner/cost/stage_times.h"
#include "planner/cost/stages.h"

namespace shardwise {

/// The stages of a pipeline and those among them that may be the fullest.
struct PipelineStages {
  std::vector<StageLayers> layers;
  std::vector<StageMix> mixes;                         // of `layers`
  mutable std::shared_ptr<const PipelineSlots> slots;  // made when it is first timed
  mutable KnownPaths paths;                            // of sweeps through them
  std::vector<std::int32_t> fullest;  // of stages alike, the one that holds most micro-batches
  std::vector<std::int32_t> held;     // of `fullest`: numbers of what their states depend on
  std::vector<HeldChoices> passes;    // of `fullest`: what they hold of other micro-batches
};

/// Everything but `held` and `passes`, which MemoryPricer::prepare() fills.
PipelineStages pipeline_stages(const ModelSpec& model, const Layout& layout,
                               std::int64_t num_microbatches);

}  // namespace shardwise
