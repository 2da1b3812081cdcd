#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/flags/job_flags.h"
#include "cli/flags/screen_flags.h"
#include "cli/terminal.h"
#include "cli/texts/report_text.h"
#include "cli/texts/summary_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/estimate/interval_table.h"
#include "planner/model/parameter_words.h"
#include "planner/question/answer_estimate.h"
#include "planner/spec/report/report_json.h"

namespace shardwise::cli {
namespace {

struct EstimateFlags {
  AskedEstimate asked;
  bool explain = false;
  ScreenFlags screen;
};

ExitCode run_estimate(const EstimateFlags& flags) {
  AskedEstimate asked = flags.asked;
  if (flags.explain) asked.detail = Detail::explained;
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  if (!answer) return refuse(answer.problems());
  const StepReport& report = answer->report;
  const ModelSpec& model = answer->subject.model;
  const ReportIntervals known = report_intervals(answer->subject.engine, answer->subject.cluster);
  if (flags.screen.json) {
    fmt::print("{}", report_json(report, reported_parameters(model), known));
  } else {
    const bool colour = wants_colour();
    fmt::print(
        "{}{}{}{}{}", verdict_text(report, colour), interval_text(report, known, colour),
        flags.screen.whole || flags.explain ? "" : short_rates_text(report, "estimated", colour),
        layout_text(report, colour, parameters_words(model)), assumed_text(answer->said, colour));
    if (flags.screen.whole || flags.explain) {
      fmt::print("{}{}{}", memory_text(report, colour), time_text(report, colour),
                 rates_text(report, known, "estimated", colour));
      fmt::print("{}", calibration_text(known, colour));
    } else {
      fmt::print("{}{}", costs_text(report, colour),
                 more_text(report, "memory by phase, every part of the time", colour));
    }
    if (flags.explain) fmt::print("{}", explanation_text(report, colour));
  }
  return report.verdict.fit == Fit::does_not_fit ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_estimate(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "estimate", "One layout: bytes per GPU, step time by part, and whether it fits");
  auto flags = std::make_shared<EstimateFlags>();
  add_job_flags(*verb, flags->asked.job);
  add_layout_flags(*verb, flags->asked.layout);
  verb->add_option("--anchor", flags->asked.anchor,
                   "Correct the estimate by the error found on this report of a run")
      ->type_name("FILE");
  verb->add_flag("--explain", flags->explain, "Print formula, values and source of every number");
  add_screen_flags(*verb, flags->screen);
  show_first(*verb, {"--model", "--cluster", "--gpus", "--engine", "--sequence-length",
                     "--global-batch-size", "--micro-batch-size", "--tp", "--pp", "--zero-stage",
                     "--recompute", "--long"});
  verb->footer(
      "Examples\n"
      "  shardwise estimate --model llama-3.1-8b --cluster dgx-h100 --engine fsdp2 \\\n"
      "      --zero-stage 3 --tp 2 --sequence-length 8192\n"
      "  shardwise estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 64 \\\n"
      "      --tp 8 --pp 4\n"
      "\n"
      "Exit codes\n"
      "  0 it fits or may fit   1 it does not fit\n"
      "  2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_estimate(*flags); }; });
}

}  // namespace shardwise::cli
