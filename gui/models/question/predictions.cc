#include "gui/models/question/predictions.h"

#include <utility>

namespace shardwise::view {

bool Predictions::corrects(const ModelSpec& model, const EngineProfile& engine) const {
  return run_ && run_->measured.model == model.name && run_->measured.engine == engine.name;
}

double Predictions::slower(const Plan& plan) const {
  return corrects(plan.model, plan.engine) ? 1 + run_->share() : 1;
}

StepReport Predictions::report(const Plan& plan, Detail detail) const {
  return corrected(estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, detail),
                   plan);
}

Seconds Predictions::step_time(const Plan& plan) const {
  return evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).step_time *
         slower(plan);
}

StepReport Predictions::corrected(StepReport report, const Plan& plan) const {
  if (corrects(plan.model, plan.engine)) correct(report, *run_);
  return report;
}

std::shared_ptr<const StepReport> Predictions::corrected(std::shared_ptr<const StepReport> report,
                                                         const Plan& plan) const {
  if (!report || !corrects(plan.model, plan.engine)) return report;
  return std::make_shared<const StepReport>(corrected(*report, plan));
}

}  // namespace shardwise::view
