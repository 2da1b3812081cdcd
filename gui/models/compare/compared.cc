#include "gui/models/compare/compared.h"

#include <cstdint>
#include <span>
#include <utility>

#include "gui/models/compare/file_kind.h"
#include "gui/models/question/simulated.h"
#include "planner/legality/legality.h"
#include "planner/spec/report/report_json.h"
#include "simulator/comparison/compare_runs.h"
#include "simulator/traces/trace_file.h"

namespace shardwise::view {
namespace {

Result<Compared> read_traced(const std::string& path, const ReadListener& listening) {
  std::int64_t spans = 0;
  sim::TraceListener listener;
  listener.stop = listening.stop;
  listener.spans = [&](std::span<const sim::ReadSpan> read) { spans += std::ssize(read); };
  double said = -1;
  listener.say = [&](std::int64_t read, std::int64_t size) {
    constexpr double kStep = 0.01;
    const double share = size > 0 ? static_cast<double>(read) / static_cast<double>(size) : 0;
    if (!listening.say || share < said + kStep) return true;
    said = share;
    listening.say({share, spans});
    return true;
  };
  Result<sim::TracedRun> run = sim::read_trace_file(path, listener);
  if (!run) return run.problems();
  Compared made;
  made.file = path;
  made.run = std::make_shared<const sim::TracedRun>(*std::move(run));
  if (made.profiled()) {
    made.report.step_time = made.run->profiled.median().profile.length;
    made.report.origin = "measured";
  } else {
    made.report = sim::report_of(*made.run);
  }
  made.origin = made.report.origin == "measured" ? "measured" : "simulated";
  if (made.report.step_time <= Seconds(0)) {
    return Diagnostic{
        path, 0, 0, "/traceEvents", "a step of zero length", "give a trace of a step that ran"};
  }
  return made;
}

}  // namespace

Compared compared_plan(Plan plan, std::string file) {
  Compared made;
  made.file = std::move(file);
  made.report = predicted_report(plan);
  made.origin = made.report.timeline ? "simulated" : "estimated";
  made.plan = std::move(plan);
  return made;
}

Compared compared_report(StepReport report, std::string file) {
  Compared made;
  made.file = std::move(file);
  const bool measured = report.origin == "measured";
  made.origin = measured ? "measured" : report.timeline ? "simulated" : "estimated";
  made.report = std::move(report);
  return made;
}

Result<Compared> read_compared(const std::string& path, const ReadListener& listening) {
  const Result<FileKind> kind = kind_of_file(path);
  if (!kind) return kind.problems();
  switch (*kind) {
    case FileKind::trace:
      return read_traced(path, listening);
    case FileKind::report: {
      Result<StepReport> report = read_report(path);
      if (!report) return report.problems();
      return compared_report(*std::move(report), path);
    }
    case FileKind::plan: {
      Result<Plan> plan = read_plan(path, check_plan);
      if (!plan) return plan.problems();
      return compared_plan(*std::move(plan), path);
    }
    default:
      return Diagnostic{path,
                        0,
                        0,
                        "",
                        "nothing that a plan is compared with",
                        "give another plan, a report or a trace"};
  }
}

}  // namespace shardwise::view
