#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/output_flags.h"
#include "cli/progress.h"
#include "cli/report_text.h"
#include "cli/terminal.h"
#include "cli/trace_progress.h"
#include "cli/verbs.h"
#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/files/atomic_file_set.h"
#include "planner/lowering/lower.h"
#include "planner/question/subject.h"
#include "planner/search/cheapest_fix.h"
#include "planner/spec/number_flags.h"
#include "planner/spec/plan.h"
#include "planner/spec/report_json.h"
#include "simulator/html/report_page.h"
#include "simulator/planning/question_of_plan.h"
#include "simulator/simulate.h"

namespace shardwise::cli {
namespace {

constexpr std::int64_t kRows = 40;

struct ReportFlags {
  std::string plan;
  std::string measured;
  std::string trace;
  std::string output;
  std::int64_t top = kRows;
};

/// The words of a command line that a shell reads as they are.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_of(const ReportFlags& flags) {
  std::string text = "shardwise report " + quoted(flags.plan);
  if (!flags.measured.empty()) text += " " + quoted(flags.measured);
  if (!flags.trace.empty()) text += " --trace " + quoted(flags.trace);
  if (flags.top != kRows) text += fmt::format(" --top {}", flags.top);
  return text + " -o " + quoted(flags.output);
}

/// The report of a run of this plan.
Result<StepReport> read_measured(const std::string& file, const Plan& plan) {
  Result<StepReport> read = read_report(file);
  if (!read) return read;
  const auto wrong = [&](const char* path, const std::string& message, const char* hint) {
    return Diagnostic{file, 0, 0, path, message, hint};
  };
  if (read->origin != "measured") {
    return wrong("/origin", read->origin + ", but a measured report is wanted",
                 "shardwise compare shows two predictions side by side");
  }
  const std::string wanted = digest(plan);
  if (!read->plan_digest.empty() && read->plan_digest != wanted) {
    return wrong("/plan_digest",
                 fmt::format("of another plan: {:.12}…, not {:.12}…", read->plan_digest, wanted),
                 "give the report of a run of this plan");
  }
  return read;
}

/// Of the plan, with formulas; what would make it fit where it does not.
StepReport explained(const Plan& plan) {
  StepReport report =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::explained);
  if (report.verdict.fit != Fit::does_not_fit) return report;
  return with_fix(std::move(report), plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

/// The trace beside the step, simulated at its granularity.
sim::TraceComparison beside_trace(const sim::TracedRun& run, const Plan& plan) {
  sim::SimulationOptions options;
  if (!run.ours() || run.head.granularity == "kernel") options.granularity = Granularity::kernel;
  return sim::compare_trace(run, plan, sim::simulate(plan, options));
}

/// Nothing where no layout of the usual space may run: the plan's is of the full one.
std::optional<sim::PlanAnswer> ranking(const sim::PlanQuestion& question) {
  Progress progress;
  Result<sim::PlanAnswer> found =
      sim::answer(question, [&](const std::string& what) { progress.say(what); });
  progress.clear();
  if (!found) return std::nullopt;
  return *std::move(found);
}

ExitCode run_report(const ReportFlags& flags) {
  const Diagnostics outputs = prepare_outputs(
      {{"--output", flags.output}},
      {{"PLAN", flags.plan}, {"MEASURED", flags.measured}, {"--trace", flags.trace}}, false);
  if (!outputs.empty()) return refuse(outputs);
  const Result<Plan> plan = read_plan(flags.plan, check_plan);
  if (!plan) return refuse(plan.problems());
  std::optional<StepReport> measured;
  if (!flags.measured.empty()) {
    Result<StepReport> read = read_measured(flags.measured, *plan);
    if (!read) return refuse(read.problems());
    measured = *std::move(read);
  }
  std::optional<sim::TracedRun> traced;
  if (!flags.trace.empty()) {
    Result<sim::TracedRun> read = read_trace(flags.trace);
    if (!read) return refuse(read.problems());
    traced = *std::move(read);
  }
  const Diagnostics long_step = too_many_operations(*plan, Granularity::layer);
  if (!long_step.empty()) return refuse(long_step);

  const StepReport estimated = explained(*plan);
  sim::Simulation made = sim::simulate(*plan);
  made.report.verdict.cheapest_fix = estimated.verdict.cheapest_fix;
  note_curves(plan->model, plan->cluster, plan->job, made.report.assumptions);
  sim::PageContent page;
  page.plan = &*plan;
  page.simulation = &made;
  page.estimate = &estimated;
  page.measured = measured ? &*measured : nullptr;
  std::optional<sim::TraceComparison> compared;
  if (traced) {
    compared = beside_trace(*traced, *plan);
    if (compared->step.measured.length <= Seconds(0)) {
      return refuse({{flags.trace, 0, 0, "/traceEvents", "its steps have zero length", ""}});
    }
    page.trace = &*compared;
  }
  const sim::PlanQuestion question =
      sim::question_of(*plan, static_cast<std::size_t>(std::max<std::int64_t>(1, flags.top)));
  const std::optional<sim::PlanAnswer> answer =
      flags.top > 0 ? ranking(question) : std::optional<sim::PlanAnswer>();
  if (answer) {
    page.question = &question;
    page.answer = &*answer;
  }
  page.command = command_of(flags);
  page.version = SHARDWISE_VERSION;
  write_file(flags.output, sim::report_page(page));
  fmt::print("{}wrote {}\n", verdict_text(made.report, wants_colour()), flags.output);
  return made.report.verdict.fit == Fit::does_not_fit ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_report(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "report", "Write a plan, its prediction and its measurement as one HTML file");
  auto flags = std::make_shared<ReportFlags>();
  verb->add_option("plan", flags->plan, "A plan.json, or a report to make again")
      ->required()
      ->type_name("PLAN");
  verb->add_option("measured", flags->measured, "The report of shardwise run for this plan")
      ->type_name("MEASURED");
  verb->add_option("--trace", flags->trace,
                   "A trace of a run: of torch.profiler (also .json.gz) or of Shardwise")
      ->type_name("TRACE");
  add_integer(*verb, "--top", flags->top, 0, 200, "Layouts in the ranking; 0 searches none [40]");
  verb->add_option("-o,--output", flags->output, "Write the page to this file")
      ->required()
      ->type_name("FILE");
  verb->footer(
      "Examples\n"
      "  shardwise report plan.json -o report.html\n"
      "  shardwise report tiny.json measured.json -o report.html\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 the plan does not fit, which the page says\n"
      "  2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_report(*flags); }; });
}

}  // namespace shardwise::cli
