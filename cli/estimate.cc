#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/idle_flags.h"
#include "cli/job_flags.h"
#include "cli/model_text.h"
#include "cli/report_text.h"
#include "cli/screen_flags.h"
#include "cli/summary_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/cost/anchor.h"
#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/search/cheapest_fix.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/command_line.h"
#include "planner/spec/problems_in_file.h"
#include "planner/spec/report_json.h"

namespace shardwise::cli {
namespace {

struct EstimateFlags {
  JobFlags job;
  LayoutFlags layout;
  std::string anchor;
  bool explain = false;
  ScreenFlags screen;
};

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

ExitCode run_estimate(const EstimateFlags& flags) {
  Result<Subject> subject = read_subject(flags.job);
  if (!subject) return refuse(subject.problems());
  const Result<Layout> layout = read_layout(flags.layout, *subject);
  if (!layout) return refuse(layout.problems());
  note_curves(subject->model, subject->cluster, subject->job, subject->assumptions);

  StepReport report = estimate(subject->model, subject->cluster, subject->job, subject->engine,
                               *layout, flags.explain ? Detail::explained : Detail::numbers);
  const std::vector<Assumption> idle = idle_flags_assumption(flags.job, flags.layout, report);
  if (report.verdict.fit != Fit::fits) {
    const std::optional<Fix> fix = cheapest_fix(subject->model, subject->cluster, subject->job,
                                                subject->engine, *layout, report.verdict.usable);
    if (fix) report.verdict.cheapest_fix = to_string(*fix);
  }
  if (!flags.anchor.empty()) {
    const Diagnostics problems = apply_anchor(flags.anchor, *subject, report);
    if (!problems.empty()) return refuse(problems);
  }
  // What was filled in for the user leads; what the model itself assumes is for --explain, but for
  // busy links, which change the answer.
  std::vector<Assumption> said = subject->assumptions;
  std::ranges::copy_if(report.assumptions, std::back_inserter(said),
                       [](const Assumption& a) { return a.id == "links.busy"; });
  said.insert(said.end(), idle.begin(), idle.end());
  report.assumptions.insert(report.assumptions.end(), subject->assumptions.begin(),
                            subject->assumptions.end());
  report.assumptions.insert(report.assumptions.end(), idle.begin(), idle.end());
  if (flags.screen.json) {
    fmt::print("{}", report_json(report, reported_parameters(subject->model)));
  } else {
    const bool colour = wants_colour();
    fmt::print(
        "{}{}{}{}", verdict_text(report, colour),
        flags.screen.whole || flags.explain ? "" : short_rates_text(report, "estimated", colour),
        layout_text(report, colour, parameters_words(subject->model)), assumed_text(said, colour));
    if (flags.screen.whole || flags.explain) {
      fmt::print("{}{}{}", memory_text(report, colour), time_text(report, colour),
                 rates_text(report, "estimated", colour));
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
  add_job_flags(*verb, flags->job);
  add_layout_flags(*verb, flags->layout);
  verb->add_option("--anchor", flags->anchor,
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
