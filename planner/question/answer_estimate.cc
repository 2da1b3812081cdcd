#include "planner/question/answer_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/cost/anchor.h"
#include "planner/cost/legality.h"
#include "planner/question/idle_flags.h"
#include "planner/search/cheapest_fix.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/problems_in_file.h"
#include "planner/spec/report_json.h"

namespace shardwise {
namespace {

/// Carries the difference between a measured run of the same model and engine and its prediction
/// over to `report`. \returns what is wrong with the anchor
Diagnostics apply_anchor(const std::string& file, const Subject& subject, StepReport& report) {
  const Result<StepReport> measured = read_report(file);
  if (!measured) return measured.problems();
  const auto wrong = [&](const char* key, std::string message, std::string hint) {
    return Diagnostics{{file, 0, 0, key, std::move(message), std::move(hint)}};
  };
  if (measured->origin != "measured") {
    return wrong("/origin", "is a prediction, not a measurement",
                 "give the report of a run (shardwise-run train --report)");
  }
  if (measured->model != report.model || measured->engine != report.engine) {
    return wrong("/model",
                 fmt::format("measured {} with {}, but the estimate is of {} with {}",
                             measured->model, measured->engine, report.model, report.engine),
                 "");
  }
  Subject same = subject;
  same.job.sequence_length = measured->sequence_length;
  same.job.global_batch_size = measured->global_batch_size;
  Result<ClusterSpec> sized = with_gpus(same.cluster, measured->layout.world());
  if (!sized) return sized.problems();
  same.cluster = *std::move(sized);
  Diagnostics illegal =
      check_layout(same.model, same.cluster, same.job, same.engine, measured->layout);
  if (!illegal.empty()) {
    const Result<JsonValue> json = read_json(file);
    return problems_in_file(std::move(illegal), json ? *json : JsonValue(), file);
  }
  const Evaluation predicted =
      evaluate(same.model, same.cluster, same.job, same.engine, measured->layout);
  anchor(report, *measured, predicted.step_time);
  return {};
}

void append(std::vector<Assumption>& to, const std::vector<Assumption>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Result<EstimateAnswer> answer_estimate(const AskedEstimate& asked) {
  Result<Subject> read = read_subject(asked.job);
  if (!read) return read.problems();
  Subject& subject = *read;
  const Result<Layout> layout = read_layout(asked.layout, subject);
  if (!layout) return layout.problems();
  note_curves(subject.model, subject.cluster, subject.job, subject.assumptions);

  StepReport report =
      estimate(subject.model, subject.cluster, subject.job, subject.engine, *layout, asked.detail);
  const std::vector<Assumption> idle = idle_flags_assumption(asked.job, asked.layout, report);
  if (report.verdict.fit != Fit::fits) {
    const std::optional<Fix> fix = cheapest_fix(subject.model, subject.cluster, subject.job,
                                                subject.engine, *layout, report.verdict.usable);
    if (fix) report.verdict.cheapest_fix = to_string(*fix);
  }
  if (!asked.anchor.empty()) {
    Diagnostics problems = apply_anchor(asked.anchor, subject, report);
    if (!problems.empty()) return problems;
  }
  // What was filled in for the user leads; what the model itself assumes is for who asks, but for
  // busy links, which change the answer.
  std::vector<Assumption> said = subject.assumptions;
  std::ranges::copy_if(report.assumptions, std::back_inserter(said),
                       [](const Assumption& a) { return a.id == "links.busy"; });
  append(said, idle);
  append(report.assumptions, subject.assumptions);
  append(report.assumptions, idle);
  return EstimateAnswer{std::move(subject), *layout, std::move(report), std::move(said)};
}

}  // namespace shardwise
