#pragma once

#include <memory>

#include "planner/estimate/estimate.h"
#include "planner/question/correction.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// The planner's predictions, calibrated by a measured run where there is one of the same model and
/// engine: step times are multiplied by what the run took over its own prediction. Every job takes
/// a copy, so that all numbers on screen are corrected alike.
class Predictions {
 public:
  Predictions() = default;
  explicit Predictions(std::shared_ptr<const Correction> run) : run_(std::move(run)) {}

  bool corrects(const ModelSpec& model, const EngineProfile& engine) const;
  /// Factor by which step times are multiplied; 1: as they are.
  double slower(const Plan& plan) const;
  StepReport report(const Plan& plan, Detail detail = Detail::numbers) const;
  Seconds step_time(const Plan& plan) const;
  /// A prediction that was made elsewhere. \pre it is of the plan's model and engine
  StepReport corrected(StepReport report, const Plan& plan) const;
  /// Corrects a report as above; null stays null.
  std::shared_ptr<const StepReport> corrected(std::shared_ptr<const StepReport> report,
                                              const Plan& plan) const;

 private:
  std::shared_ptr<const Correction> run_;  // null: none
};

}  // namespace shardwise::view
