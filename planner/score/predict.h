#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_cluster.h"
#include "planner/score/rows/row_job.h"
#include "planner/score/rows/row_measured.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Prediction of a row.
struct RowPrediction {
  Notes notes;
  // The row in the planner's own terms; empty after a refusal.
  ModelSpec model;
  std::shared_ptr<const ClusterSpec> cluster;
  const EngineProfile* engine = nullptr;
  std::vector<RowVariant> variants;
  std::vector<StepReport> reports;   // of the variants
  std::optional<double> memory_gib;  // of the kind the row measured
  std::optional<double> step_time_s;
  std::optional<double> measured_time_s;  // from the step time, tokens/s or samples/s
  std::optional<double> reserved_gib;     // beside memory_gib, where the row has it
  std::optional<double> after_step_gib;
  MeasuredMemory memory;
};

/// Seconds of a plan's step by other means than the step-time model, whose report of it is given.
using StepTimer = std::function<Seconds(const Plan& plan, const StepReport& report)>;

/// Says rows in the planner's terms and predicts them; keeps machines that several rows share.
class RowPredictor {
 public:
  /// \param step_time  asked for rows whose time is compared; by default the step-time model
  explicit RowPredictor(StepTimer step_time = {}) : step_time_(std::move(step_time)) {}

  /// \param explained  the reports carry explanations
  RowPrediction predict(const Row& row, bool explained = false);

 private:
  Seconds time_of(const RowPrediction& p, const RowVariant& variant,
                  const StepReport& report) const;

  StepTimer step_time_;
  Machines machines_;
};

}  // namespace shardwise
