#include "planner/question/answer_estimate.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/question/advice.h"
#include "planner/question/correction.h"
#include "planner/question/idle_flags.h"
#include "planner/question/refused_flags.h"
#include "planner/spec/report/report_json.h"

namespace shardwise {
namespace {

void append_assumptions(std::vector<Assumption>& to, const std::vector<Assumption>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Result<EstimateAnswer> answer_estimate(const AskedEstimate& asked) {
  Result<Subject> read = read_subject(asked.job);
  if (!read) return read.problems();
  Subject& subject = *read;
  const Result<Layout> layout = read_layout(asked.layout, subject);
  if (!layout) return layout.problems();
  Diagnostics refused = refused_flags(asked.job, asked.layout, subject.engine, *layout);
  if (!refused.empty()) return refused;
  note_curves(subject.model, subject.cluster, subject.job, subject.assumptions);

  StepReport report =
      estimate(subject.model, subject.cluster, subject.job, subject.engine, *layout, asked.detail);
  const std::vector<Assumption> idle = idle_flags_assumption(asked.job, asked.layout, report);
  if (report.verdict.fit != Fit::fits) {
    report = with_advice(std::move(report), subject.model, subject.cluster, subject.job,
                         subject.engine, *layout);
  }
  if (!asked.anchor.empty()) {
    const Result<StepReport> measured = read_report(asked.anchor);
    if (!measured) return measured.problems();
    const Result<Correction> correction = correction_by(*measured, asked.anchor, subject);
    if (!correction) return correction.problems();
    correct(report, *correction);
  }
  // What was filled in for the user leads; what the model itself assumes is for who asks, but for
  // busy links, which change the answer.
  std::vector<Assumption> said = subject.assumptions;
  std::ranges::copy_if(report.assumptions, std::back_inserter(said),
                       [](const Assumption& a) { return a.id == "links.busy"; });
  append_assumptions(said, idle);
  append_assumptions(report.assumptions, subject.assumptions);
  append_assumptions(report.assumptions, idle);
  return EstimateAnswer{std::move(subject), *layout, std::move(report), std::move(said)};
}

}  // namespace shardwise
