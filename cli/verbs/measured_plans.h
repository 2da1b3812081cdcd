#pragma once

#include <optional>
#include <span>
#include <string>

#include "answers/plan_answer.h"
#include "answers/plan_question.h"
#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// A plan that was trained, beside what was predicted of it.
struct MeasuredPlan {
  sim::PlanRow row;
  StepReport predicted;
  std::optional<StepReport> measured;
  std::string refused;  // why it did not run

  /// Error of the predicted step, as a share of the measured one. \pre measured
  double error() const { return predicted.step_time / measured->step_time - 1; }
};

/// The median of the errors' sizes; nothing where none was measured.
std::optional<double> median_error(std::span<const MeasuredPlan> plans);

/// Degree to which the measured steps are in the order of the predicted ones: 1 all pairs, -1 none.
/// A pair of equal steps is in neither order. Nothing of fewer than three plans. Source: Kendall,
/// "A New Measure of Rank Correlation" (Biometrika 30, 1938).
std::optional<double> kendall_tau(std::span<const MeasuredPlan> plans);

/// A row for each plan, and what they say together. \pre there is one
std::string measured_text(std::span<const MeasuredPlan> plans, bool colour);

/// Plans as above for a program, schema "shardwise.measured_plans/1".
std::string measured_json(std::span<const MeasuredPlan> plans, std::int64_t steps);

}  // namespace shardwise::cli
