#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/score/notes.h"
#include "planner/score/row.h"
#include "planner/score/row_cluster.h"
#include "planner/score/row_job.h"
#include "planner/score/row_measured.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/report.h"

namespace shardwise {

/// What the planner says about a row.
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

/// Says rows in the planner's terms and predicts them; keeps machines that several rows share.
class RowPredictor {
 public:
  /// \param explained  the reports carry explanations
  RowPrediction predict(const Row& row, bool explained = false);

 private:
  Machines machines_;
};

}  // namespace shardwise
