#pragma once

#include <string>

#include "planner/export/framework/framework.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Whether the GPUs of a plan's cluster have the memory for it, as `estimate` says it.
struct PlanFit {
  /// Prediction whose cheapest fix is one that the framework can be told, where there is one.
  StepReport report;
  std::string words;  // "Does not fit: 91.2 of 79.2 GiB on the fullest GPU, 12.0 GiB too much"
  /// "--recompute=full: 61.2 GiB, 1.32 s a step (activation-checkpoint:full)"; what is missing
  /// where nothing makes it fit; "" where it fits.
  std::string change;

  bool fits() const { return report.verdict.fit == Fit::fits; }
  /// Words and change as one line.
  std::string line() const;
};

PlanFit plan_fit(const Plan& plan, const Framework& framework);

}  // namespace shardwise
