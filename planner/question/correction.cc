#include "planner/question/correction.h"

#include <fmt/format.h>

#include <utility>

#include "planner/estimate/anchor.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/problems_in_file.h"

namespace shardwise {

Result<Correction> correction_by(const StepReport& measured, const std::string& file,
                                 const Subject& subject) {
  const auto wrong = [&](const char* key, std::string message, std::string hint) {
    return Diagnostic{file, 0, 0, key, std::move(message), std::move(hint)};
  };
  if (measured.origin != "measured") {
    return wrong("/origin", "is a prediction, not a measurement",
                 "give the report of a run (shardwise-run train --report)");
  }
  if (measured.model != subject.model.name || measured.engine != subject.engine.name) {
    return wrong(
        "/model",
        fmt::format("measured {} with {}, but the estimate is of {} with {}", measured.model,
                    measured.engine, subject.model.name, subject.engine.name),
        "");
  }
  JobSpec job = subject.job;
  job.sequence_length = measured.sequence_length;
  job.global_batch_size = measured.global_batch_size;
  const Result<ClusterSpec> cluster = with_gpus(subject.cluster, measured.layout.world());
  if (!cluster) return cluster.problems();
  Diagnostics illegal = check_layout(subject.model, *cluster, job, subject.engine, measured.layout);
  if (!illegal.empty()) {
    const Result<JsonValue> json = read_json(file);
    return problems_in_file(std::move(illegal), json ? *json : JsonValue(), file);
  }
  const Evaluation predicted =
      evaluate(subject.model, *cluster, job, subject.engine, measured.layout);
  return Correction{measured, predicted.step_time};
}

void correct(StepReport& report, const Correction& correction) {
  anchor(report, correction.measured, correction.predicted);
}

}  // namespace shardwise
