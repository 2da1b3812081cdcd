#pragma once

#include "planner/cost/step/step_time.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// Mechanisms of the step-time model that slow a step down beyond its operations and their order.
struct ClosedFormMechanisms {
  bool multiprocessors = true;  // collectives take some from compute
  bool host = true;             // kernels wait to be issued
  bool links = true;            // what several axes move meets on links
};

/// Step time by the step-time model. docs/time.md, "Step time".
TimeParts closed_form_time(const Plan& plan, const ClosedFormMechanisms& with,
                           StepDetail* detail = nullptr);
inline Seconds closed_form_step(const Plan& plan, const ClosedFormMechanisms& with) {
  return closed_form_time(plan, with).total();
}

/// The step-time model's answer to what was simulated, with contention and hosts or without, and
/// what each mechanism adds to either: the step is simulated again as if nothing shared anything,
/// and with one mechanism more each time.
/// \param simulated  the report of simulate(plan, options)
ClosedForm beside_closed_form(const Plan& plan, const SimulationOptions& options,
                              const StepReport& simulated);

}  // namespace shardwise::sim
