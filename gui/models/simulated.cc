#include "gui/models/simulated.h"

#include "planner/estimate/estimate.h"
#include "simulator/simulate.h"

namespace shardwise::view {
bool is_simulated(const Plan& plan) { return sim::layer_passes_of_step(plan) <= kMostPasses; }

StepReport predicted_report(const Plan& plan) {
  if (is_simulated(plan)) return sim::simulate(plan).report;
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

}  // namespace shardwise::view
