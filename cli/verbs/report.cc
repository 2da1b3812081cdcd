#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "answers/html/make_page.h"
#include "cli/flags/output_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/texts/report_text.h"
#include "cli/trace_progress.h"
#include "cli/verbs.h"
#include "planner/command/number_flags.h"
#include "planner/files/atomic_file_set.h"
#include "planner/legality/legality.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

struct ReportFlags {
  std::string plan;
  std::string measured;
  std::string trace;
  std::string output;
  std::int64_t top = static_cast<std::int64_t>(sim::PageRequest().top);
  bool levers = false;
  std::string date;
};

/// The report of a run of this plan.
Result<StepReport> read_measured(const std::string& file, const Plan& plan) {
  Result<StepReport> read = read_report(file);
  if (!read) return read;
  const Diagnostics foreign = sim::check_measured(*read, file, plan);
  if (!foreign.empty()) return foreign;
  return read;
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
  sim::PageRequest request;
  request.plan = &*plan;
  request.measured = measured ? &*measured : nullptr;
  request.traced = traced ? &*traced : nullptr;
  request.trace_file = flags.trace;
  request.top = static_cast<std::size_t>(flags.top);
  request.command = sim::command_of({flags.plan, flags.measured, flags.trace, flags.output},
                                    request.top, flags.levers, flags.date);
  request.date = flags.date;
  request.levers = flags.levers;
  request.version = SHARDWISE_VERSION;
  Progress progress;
  const Result<sim::MadePage> made =
      sim::make_page(request, [&](const std::string& what) { progress.say(what); });
  progress.clear();
  if (!made) return refuse(made.problems());
  write_file(flags.output, made->text);
  fmt::print("{}wrote {}\n", verdict_text(made->report, wants_colour()), shown(flags.output, 500));
  return made->report.verdict.fit == Fit::does_not_fit ? ExitCode::nothing_fits : ExitCode::done;
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
  verb->add_flag("--levers", flags->levers, "Say what would help most, as plan --levers does");
  verb->add_option("--date", flags->date, "Say when the page was made: \"30 November 2026\"")
      ->type_name("DATE");
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
