#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/screen_flags.h"
#include "cli/terminal.h"
#include "cli/texts/plan_difference_text.h"
#include "cli/texts/traced_run_text.h"
#include "cli/trace_progress.h"
#include "cli/verbs.h"
#include "planner/command/number_flags.h"
#include "planner/legality/legality.h"
#include "planner/question/plan_difference.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"
#include "simulator/comparison/compare.h"
#include "simulator/comparison/compare_runs.h"
#include "simulator/comparison/compare_words.h"
#include "simulator/comparison/kind_comparison.h"
#include "simulator/traces/trace_file.h"

namespace shardwise::cli {
namespace {

// Rows of a table when --top does not say.
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kLongRows = 20;
constexpr std::size_t kNoteWidth = 80;

struct CompareFlags {
  std::string first;
  std::string second;
  std::int64_t top = 0;          // as the screen has room for
  double tolerance = -1;         // of the step time; none
  double memory_tolerance = -1;  // of the peak memory; none
  ScreenFlags screen;
};

/// A file to compare: a report, or a trace.
struct Side {
  std::string file;
  StepReport report;  // of a report, or of a trace of ours
  bool traced = false;
  sim::TracedRun run;  // of a trace
  bool profiled() const { return traced && run.by_profiler; }
};

Result<Side> read_side(const std::string& file) {
  Side side;
  side.file = file;
  if (!sim::is_trace(file)) {
    Result<StepReport> report = read_report(file);
    if (!report) return report.problems();
    side.report = *std::move(report);
    return side;
  }
  Result<sim::TracedRun> run = read_trace(file);
  if (!run) return run.problems();
  side.traced = true;
  side.run = *std::move(run);
  if (!side.profiled()) side.report = sim::report_of(side.run);
  return side;
}

Seconds step_of(const Side& side) {
  return side.profiled() ? side.run.profiled.median().profile.length : side.report.step_time;
}

/// Why two files cannot be compared; nothing when they can.
Diagnostics unlike(const Side& a, const Side& b) {
  if (a.profiled() != b.profiled()) {
    const Side& one = a.profiled() ? a : b;
    const Side& other = a.profiled() ? b : a;
    return {{one.file, 0, 0, "",
             fmt::format("a profiler's trace has kernels, {} has operations of a step program",
                         other.file),
             "shardwise simulate PLAN --import compares a profiler's trace by kind and phase"}};
  }
  if (step_of(a) <= Seconds(0)) {
    const char* where = a.traced ? "/traceEvents" : "/step_time_s";
    return {{a.file, 0, 0, where, "a step of zero length",
             "give a report or trace of a step that ran"}};
  }
  return {};
}

std::string side_text(const char* letter, const Side& side) {
  const std::string step = format_seconds(step_of(side));
  if (!side.traced) {
    const StepReport& r = side.report;
    std::string text = fmt::format("{}  {}, {}, {}, {}: {}\n", letter, r.origin, r.model, r.cluster,
                                   r.engine, step);
    // Why times mean nothing.
    for (const Assumption& each : r.assumptions) {
      if (each.id.starts_with("device.")) text += wrap("   " + each.text, kNoteWidth) + "\n";
    }
    return text;
  }
  const std::size_t steps =
      side.profiled() ? side.run.profiled.steps.size() : side.run.operations.size();
  return fmt::format("{}  {} trace, median of {} {}: {}\n", letter,
                     side.profiled() ? "a profiler's" : shown(side.report.origin), steps,
                     steps == 1 ? "step" : "steps", step);
}

/// "B has vpp 4 instead of 2": what of job and layout is not in the lines above.
std::string differences_text(const StepReport& a, const StepReport& b) {
  const std::vector<std::string> found = sim::differing_settings(b, a);
  if (found.empty()) return "";
  return wrap(fmt::format("B has {}", fmt::join(found, ", ")), kTextWidth) + "\n";
}

/// Where the two steps do not train the same: a difference is then of the work, too.
std::string other_work_text(const StepReport& a, const StepReport& b) {
  const std::vector<std::string> found = sim::other_work(a, b);
  if (found.empty()) return "";
  return fmt::format("A and B have different {}: their steps do different work\n",
                     fmt::join(found, " and "));
}

/// "101.5 % more time than A".
std::string longer_text(double relative) {
  const std::string share = format_percent(std::abs(relative));
  if (share == format_percent(0)) return "the same time as A";
  return fmt::format("{} {} time than A", share, relative > 0 ? "more" : "less");
}

/// Rows that differ as far as the table prints; all of them with --long.
std::vector<sim::ComparedTime> differing(std::vector<sim::ComparedTime> rows, bool whole) {
  const std::string nothing = signed_seconds(Seconds(0));
  const auto same = [&](const sim::ComparedTime& row) {
    return !whole && signed_seconds(row.difference()) == nothing;
  };
  std::erase_if(rows, same);
  return rows;
}

/// Parts of a step by the words of every other table; a report has them by their keys.
std::vector<sim::ComparedTime> labelled(std::vector<sim::ComparedTime> parts) {
  for (sim::ComparedTime& row : parts) {
    const auto* const part = std::ranges::find(kTimeParts, row.name, &TimePart::key);
    if (part != kTimeParts.end()) row.name = part->label;
  }
  return parts;
}

std::string comparison_text(const Side& a, const Side& b, const sim::Comparison& found,
                            std::size_t top, bool whole, bool colour) {
  const bool reports = !a.traced && !b.traced;
  std::string text = side_text("A", a) + side_text("B", b);
  if (reports) {
    text += other_work_text(a.report, b.report) + differences_text(a.report, b.report);
  }
  text += "B takes " + longer_text(found.relative());
  if (reports) {
    text += fmt::format("; peak memory {} in A, {} in B", format_bytes(found.first_peak),
                        format_bytes(found.second_peak));
  }
  text += "\n";
  if (reports) {
    text += compared_text("part of the step", labelled(differing(found.parts, whole)), "A", "B",
                          top, false, colour);
    text += compared_text("exposed communication", differing(found.axes, whole), "A", "B", top,
                          false, colour);
  }
  if (a.profiled()) {
    const sim::StepComparison kinds =
        sim::compare_steps(a.run.profiled.median().profile, b.run.profiled.median().profile);
    text += kinds_text(kinds, "A", "B", colour);
  }
  std::vector<sim::ComparedTime> rows = found.operations;
  if (a.profiled()) {
    for (sim::ComparedTime& row : rows) row.name = short_name(row.name);
  }
  return text + compared_text(a.profiled() ? "kernel, a step" : "operation", rows, "A", "B", top,
                              !a.profiled(), colour);
}

/// Whether a file says in its first bytes that it is a plan.
bool is_plan(const std::string& path) {
  std::string begin(256, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return begin.find("\"shardwise.plan/") != std::string::npos;
}

/// Two plans: fields that differ, with the price of each.
ExitCode compare_plans(const CompareFlags& flags) {
  const Result<Plan> first = read_plan(flags.first, check_plan);
  const Result<Plan> second = read_plan(flags.second, check_plan);
  Diagnostics problems;
  for (const Result<Plan>* each : {&first, &second}) {
    if (each->ok()) continue;
    problems.insert(problems.end(), each->problems().begin(), each->problems().end());
  }
  if (!problems.empty()) return refuse(problems);
  const PlanDifferences found = plan_differences(*first, *second);
  fmt::print("{}", flags.screen.json ? plan_differences_json(found)
                                     : plan_differences_text(found, wants_colour()));
  const auto apart = [](double part, double whole, double tolerance) {
    return tolerance >= 0 && std::abs(part) > tolerance * std::abs(whole);
  };
  const bool slower = apart((found.second_step - found.first_step).value(),
                            found.first_step.value(), flags.tolerance);
  const bool larger =
      apart(static_cast<double>((found.second_memory - found.first_memory).value()),
            static_cast<double>(found.first_memory.value()), flags.memory_tolerance);
  return slower || larger ? ExitCode::nothing_fits : ExitCode::done;
}

ExitCode run_compare(const CompareFlags& flags) {
  const bool plan_first = is_plan(flags.first);
  const bool plan_second = is_plan(flags.second);
  if (plan_first && plan_second) return compare_plans(flags);
  if (plan_first || plan_second) {
    return refuse({{plan_first ? flags.first : flags.second, 0, 0, "",
                    fmt::format("a plan, and {} is none", plan_first ? flags.second : flags.first),
                    "compare two plans, two reports or traces; shardwise simulate PLAN -o "
                    "report.json writes a plan's report"}});
  }
  const Result<Side> first = read_side(flags.first);
  const Result<Side> second = read_side(flags.second);
  Diagnostics problems;
  for (const Result<Side>* each : {&first, &second}) {
    if (each->ok()) continue;
    problems.insert(problems.end(), each->problems().begin(), each->problems().end());
  }
  if (problems.empty()) problems = unlike(*first, *second);
  if (problems.empty() && flags.memory_tolerance >= 0 && (first->traced || second->traced)) {
    problems.push_back({"command line", 0, 0, "--memory-tolerance", "a trace has no peak memory",
                        "compare two reports, or leave it out"});
  }
  if (!problems.empty()) return refuse(problems);
  sim::Comparison found = first->profiled()
                              ? sim::compare_profiled(first->run.profiled, second->run.profiled)
                              : sim::compare(first->report, second->report);
  if (first->traced || second->traced) {  // a trace says nothing of these
    found.parts.clear();
    found.axes.clear();
  }
  const std::int64_t room = flags.screen.whole ? kLongRows : kRows;
  const std::int64_t top = flags.top > 0 ? flags.top : room;
  fmt::print("{}", flags.screen.json
                       ? comparison_json(found)
                       : comparison_text(*first, *second, found, static_cast<std::size_t>(top),
                                         flags.screen.whole, wants_colour()));
  const auto apart = [](double relative, double tolerance) {
    return tolerance >= 0 && std::abs(relative) > tolerance;
  };
  return apart(found.relative(), flags.tolerance) ||
                 apart(found.relative_peak(), flags.memory_tolerance)
             ? ExitCode::nothing_fits
             : ExitCode::done;
}

}  // namespace

void add_compare(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "compare", "Compare two plans field by field, reports or traces operation by operation");
  auto flags = std::make_shared<CompareFlags>();
  verb->add_option("A", flags->first, "A plan.json, a report.json or a trace")
      ->required()
      ->type_name("FILE");
  verb->add_option("B", flags->second, "The second")->required()->type_name("FILE");
  add_integer(*verb, "--top", flags->top, 1, 1'000'000, "Rows of each table [6; 20 with --long]");
  add_number(*verb, "--tolerance", flags->tolerance, 0, 1e6,
             "Exit with 1 if the step times differ by more than this share of A's; nothing else "
             "is compared with it")
      ->type_name("SHARE");
  add_number(
      *verb, "--memory-tolerance", flags->memory_tolerance, 0, 1e6,
      "Exit with 1 if the peak memories of two reports differ by more than this share of A's")
      ->type_name("SHARE");
  add_screen_flags(*verb, flags->screen);
  verb->footer(
      "Examples\n"
      "  shardwise compare predicted.json measured.json\n"
      "  shardwise compare plan.json other_plan.json\n"
      "  shardwise compare fsdp2.json megatron_fsdp.json --top 5\n"
      "  shardwise compare report.json trace.json\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 a difference exceeds its tolerance\n"
      "  2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_compare(*flags); }; });
}

}  // namespace shardwise::cli
