#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/flags/job_flags.h"
#include "cli/terminal.h"
#include "cli/texts/report_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/estimate/interval_table.h"
#include "planner/model/parameter_words.h"
#include "planner/question/asked_fits.h"
#include "planner/question/fits_limits.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

struct FitsFlags {
  AskedFits asked;
  bool json = false;
};

/// "Fits 79.2 GiB: nvidia-smi 28.4 GiB on the fullest GPU, at most 30.1 GiB", the line of memory,
/// and what of it must fit.
std::string numbers_text(const StepReport& report, bool colour) {
  const Verdict& verdict = report.verdict;
  const bool fits = verdict.fit == Fit::fits;
  const char* words = fits                               ? "Fits"
                      : verdict.fit == Fit::does_not_fit ? "Does not fit"
                                                         : "May not fit";
  const Tone tone = fits                               ? Tone::good
                    : verdict.fit == Fit::does_not_fit ? Tone::bad
                                                       : Tone::warning;
  return paint(fmt::format("{} {}", words, format_bytes(verdict.usable)), tone, colour) +
         fmt::format(": nvidia-smi {} on the fullest GPU, at most {}\n{}\n",
                     format_bytes(verdict.point), format_bytes(verdict.upper),
                     memory_sum(memory_numbers(report))) +
         wrap(ends_words(report), kTextWidth, 2) + "\n";
}

std::string change_text(const Verdict& verdict, bool colour) {
  if (verdict.fit == Fit::fits) return "";
  const std::string change = verdict.cheapest_fix.empty()
                                 ? "no three changes make it fit, nor 256 times the GPUs"
                                 : verdict.cheapest_fix;
  return paint(wrap("Change first: " + change, kTextWidth, 2), Tone::strong, colour) + "\n";
}

ReportIntervals intervals_of(const EstimateAnswer& answer) {
  return report_intervals(answer.subject.engine, answer.subject.cluster);
}

std::string recompute_text(const Layout& layout) {
  if (layout.recompute == Recompute::none) return "none";
  if (layout.recompute_interval == 1) return "--recompute full";
  return fmt::format("--recompute full --recompute-interval {}", layout.recompute_interval);
}

/// "Fits up to 11,264 tokens a sequence, or 2 sequences a micro-batch".
std::string limits_text(const FitsLimits& limits) {
  std::string text;
  if (limits.longest_sequence > 0) {
    text += fmt::format("longest sequence that fits: {} tokens; ",
                        format_count(limits.longest_sequence));
  }
  if (limits.largest_micro_batch > 0) {
    text += fmt::format("largest micro-batch: {}; ", format_count(limits.largest_micro_batch));
  }
  if (limits.least_recompute) {
    const RecomputeChoice& choice = *limits.least_recompute;
    text += fmt::format("least recompute: {} ({}, {} a step)", recompute_text(choice.layout),
                        format_bytes(choice.point), format_seconds(choice.step_time));
  }
  if (text.ends_with("; ")) text.resize(text.size() - 2);
  return text.empty() ? "" : wrap(text, kTextWidth, 2) + "\n";
}

void write_limits(JsonWriter& json, const FitsLimits& limits) {
  json.member("longest_sequence", limits.longest_sequence);
  json.member("largest_micro_batch", limits.largest_micro_batch);
  if (!limits.least_recompute) {
    json.null_member("least_recompute");
    return;
  }
  const RecomputeChoice& choice = *limits.least_recompute;
  json.begin_object("least_recompute");
  json.member("recompute", name_of(choice.layout.recompute));
  json.member("recompute_interval", choice.layout.recompute_interval);
  json.member("nvidia_smi_bytes", choice.point.value());
  json.member("step_time_s", choice.step_time.value());
  json.end_object();
}

std::string fits_json(const EstimateAnswer& answer, const FitsLimits& limits) {
  const StepReport& report = answer.report;
  const MemoryNumbers numbers = memory_numbers(report);
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.fits/1");
  json.member("model", report.model);
  json.member("cluster", report.cluster);
  json.member("gpu", answer.subject.cluster.gpu.name);
  json.member("gpus", report.layout.world());
  json.member("engine", report.engine);
  json.member("fit", name_of(report.verdict.fit));
  json.member("usable_bytes", report.verdict.usable.value());
  json.member("allocated_bytes", numbers.allocated.value());
  json.member("reserved_bytes", numbers.reserved.value());
  json.member("nvidia_smi_bytes", numbers.nvidia_smi.value());
  json.member("nvidia_smi_upper_bytes", report.verdict.upper.value());
  json.member("needed_bytes", report.verdict.needed.value());
  json.member("phase", name_of(numbers.ends_in));
  json.member("step_time_s", report.step_time.value());
  write_intervals(json, report, intervals_of(answer));
  if (report.verdict.cheapest_fix.empty()) {
    json.null_member("change");
  } else {
    json.member("change", report.verdict.cheapest_fix);
  }
  write_limits(json, limits);
  json.begin_array("assumptions");
  for (const Assumption& each : answer.said) json.element(each.text);
  json.end_array();
  json.end_object();
  return json.text();
}

ExitCode run_fits(const FitsFlags& flags) {
  const Result<EstimateAnswer> answer = answer_fits(flags.asked);
  if (!answer) return refuse(answer.problems());
  const StepReport& report = answer->report;
  const FitsLimits limits = fits_limits(answer->subject, answer->layout, report.verdict.usable);
  if (flags.json) {
    fmt::print("{}", fits_json(*answer, limits));
  } else {
    const bool colour = wants_colour();
    fmt::print("{}{}{}{}{}{}", numbers_text(report, colour),
               interval_text(report, intervals_of(*answer), colour),
               change_text(report.verdict, colour), limits_text(limits),
               layout_text(report, colour, parameters_words(answer->subject.model)),
               assumed_text(answer->said, colour));
  }
  return report.verdict.fit == Fit::does_not_fit ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_fits(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("fits", "Does a model fit on GPUs of a kind, and what to change first");
  auto flags = std::make_shared<FitsFlags>();
  add_job_flags(*verb, flags->asked.job, JobScope::one_gpu);
  verb->add_option("--gpu", flags->asked.gpu, "Catalogue name, or its first part (h100)")
      ->required()
      ->type_name("NAME");
  add_layout_flags(*verb, flags->asked.layout);
  verb->add_flag("--json", flags->json, "Print the same facts for a program");
  show_first(*verb,
             {"--model", "--gpu", "--gpus", "--engine", "--sequence-length", "--micro-batch-size",
              "--zero-stage", "--recompute", "--tp", "--frozen-base", "--loss", "--json"});
  verb->footer(
      "Examples\n"
      "  shardwise fits meta-llama/Llama-3.1-8B --gpu h100 --gpus 8\n"
      "  shardwise fits llama-3.1-70b --gpu h100 --gpus 64 --recompute full\n"
      "\n"
      "Exit codes\n"
      "  0 it fits or may fit   1 it does not fit\n"
      "  2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_fits(*flags); }; });
}

}  // namespace shardwise::cli
