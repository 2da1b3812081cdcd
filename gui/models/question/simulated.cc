#include "gui/models/question/simulated.h"

#include "planner/estimate/estimate.h"
#include "simulator/clock/simulate.h"

namespace shardwise::view {
bool is_simulated(const Plan& plan) { return sim::layer_passes_of_step(plan) <= kMostPasses; }

StepReport predicted_report(const Plan& plan) {
  if (is_simulated(plan)) return sim::simulate(plan).report;
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

}  // namespace shardwise::view
