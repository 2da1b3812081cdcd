#pragma once

#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/export/plan_fit.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// Predictions for a legal configuration.
struct Predictions {
  PlanFit fit;
  std::vector<Finding> findings;
};

/// Whether a legal configuration fits the GPUs, and what it pays for nothing, with the predicted
/// figure: a change of the plan each that makes the step shorter, or a GPU's memory less, by
/// kWorthSaying:
/// - gradients that are reduced in every micro-batch,
/// - weights sharded over nodes where groups of a node would do,
/// - recompute that the memory does not need,
/// - an AdamW whose kernels hold temporaries,
/// - a loss that holds whole logits,
/// - buckets so small that their collectives take latency more than bandwidth.
/// \param plan  as import_plan() read it from these settings
Predictions check_predictions(const Plan& plan, const Framework& framework,
                              const Settings& settings);

}  // namespace shardwise
