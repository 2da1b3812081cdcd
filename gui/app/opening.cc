#include "gui/app/opening.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "answers/asked_step.h"
#include "gui/models/compare/compared.h"
#include "gui/models/compare/file_kind.h"
#include "gui/models/question/open_question.h"
#include "planner/legality/legality.h"
#include "planner/question/subject.h"
#include "planner/spec/report/report_json.h"

namespace shardwise::view {
namespace {

Diagnostic wrong(const std::string& file, std::string message, std::string hint) {
  return {file, 0, 0, "", std::move(message), std::move(hint)};
}

/// Puts a file where the opening has a place for it. \returns what is wrong
Diagnostics place_file(const std::string& file, FileKind kind, sim::AskedPlan& asked,
                       Opening& opening, std::string& plan) {
  const auto put = [&](std::string& where, const char* what) -> Diagnostics {
    if (!where.empty()) {
      return {wrong(file, fmt::format("a second {}, after {}", what, where), "give one of them")};
    }
    where = file;
    return {};
  };
  switch (kind) {
    case FileKind::plan:
      return plan.empty() ? put(plan, "plan") : put(opening.compared, "file to compare with");
    case FileKind::report:
    case FileKind::trace:
      return put(opening.compared, "file to compare with");
    case FileKind::metrics:
      return put(opening.metrics, "file of metrics");
    case FileKind::model:
      return put(asked.job.model, "model");
    case FileKind::cluster:
      return put(asked.job.cluster, "cluster");
  }
  return {};
}

bool is_trace(const std::string& file) {
  const Result<FileKind> kind = kind_of_file(file);
  return kind && *kind == FileKind::trace;
}

/// The question that a window shows until people choose one.
Result<Plan> plan_to_begin_with() {
  sim::AskedPlan asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.cluster = "dgx-h100";
  return best_plan(asked);
}

/// The plan of a report that stands alone.
Result<Plan> plan_of_compared(Opening& opening) {
  const Result<FileKind> kind = kind_of_file(opening.compared);
  if (!kind) return kind.problems();
  if (*kind == FileKind::trace) {
    const Result<Compared> read = read_compared(opening.compared);  // it may be none
    if (!read) return read.problems();
  }
  if (*kind != FileKind::report) {
    return wrong(opening.compared, "a trace has no plan in it",
                 "give the plan first: shardwise-view plan.json trace.json");
  }
  const Result<StepReport> report = read_report(opening.compared);
  if (!report) return report.problems();
  Result<Plan> plan = plan_of_report(*report, opening.compared);
  if (plan && !report->plan_digest.empty() && digest(*plan) != report->plan_digest) {
    opening.note = "the plan of the report, with usual settings where it does not say them";
  }
  return plan;
}

}  // namespace

Result<Opening> open_plan(const Options& options) {
  Opening opening;
  opening.metrics = options.metrics;
  sim::AskedPlan asked;
  asked.job = options.asked;
  std::string file;
  Diagnostics problems;
  for (const std::string& each : options.files) {
    const Result<FileKind> kind = kind_of_file(each);
    const Diagnostics found =
        kind ? place_file(each, *kind, asked, opening, file) : kind.problems();
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!problems.empty()) return problems;
  sim::AskedStep fixed;
  fixed.plan = file;
  fixed.job = asked.job;
  Diagnostics twice = sim::fixed_by_plan(fixed);
  if (!twice.empty()) return twice;
  const bool named = !given_flags(asked.job).empty();
  const bool window = options.shot.empty() && options.script.empty();
  if (named && asked.job.model.empty()) return wrong("command line", "no model", "add --model");
  if (named && asked.job.cluster.empty()) {
    return wrong("command line", "no cluster", "add --cluster");
  }
  const bool nothing = !named && file.empty() && opening.compared.empty();
  if (nothing && !window) {
    return wrong("command line", "no plan",
                 "write one with shardwise plan -o plan.json, then shardwise-view plan.json; or "
                 "give --model and --cluster");
  }
  opening.start = nothing || (window && !named && file.empty() && is_trace(opening.compared));
  Result<Plan> plan = opening.start  ? plan_to_begin_with()
                      : named        ? best_plan(asked)
                      : file.empty() ? plan_of_compared(opening)
                                     : read_plan(file, check_plan);
  if (!plan) return plan.problems();
  opening.plan = *std::move(plan);
  opening.file = file;
  return opening;
}

std::vector<NamedFile> inputs_of(const Options& options) {
  std::vector<NamedFile> files = {{"--script", options.script},
                                  {"--metrics", options.metrics},
                                  {"--layout", options.layout},
                                  {"--model", options.asked.model},
                                  {"--cluster", options.asked.cluster}};
  for (const std::string& each : options.files) files.push_back({"FILE", each});
  return files;
}

}  // namespace shardwise::view
