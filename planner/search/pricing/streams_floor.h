#pragma once

#include <span>

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/schedule/stages.h"

namespace shardwise {

/// Least time of the passes of a step where parameters or gradients move layer by layer
/// (PassStreams), found without a sweep: on each stage compute with what it loses to collectives,
/// gathers and reductions take their time one after the other.
/// \param layers  layer_paces() of `stages` \pre reduces_by_unit(context)
Seconds streams_floor(std::span<const LayerPace> layers, std::span<const StageLayers> stages,
                      const LeafContext& context, const PassLosses& losses);

}  // namespace shardwise
