#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/spec/format.h"
#include "planner/spec/report_json.h"
#include "planner/spec/table.h"
#include "simulator/compare.h"

namespace shardwise::cli {
namespace {

struct CompareFlags {
  std::string first;
  std::string second;
  std::int64_t top = 20;
  double tolerance = -1;  // none
  bool json = false;
};

std::string signed_seconds(Seconds time) {
  return (time < Seconds(0) ? "-" : "+") + format_seconds(Seconds(std::abs(time.value())));
}

std::string rows_text(const std::string& heading, const std::vector<sim::ComparedTime>& rows,
                      std::size_t top, bool stages, bool colour) {
  if (rows.empty()) return "";
  Table table({{heading, Align::left}, {stages ? "stage" : ""}, {"A"}, {"B"}, {"B - A"}});
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const sim::ComparedTime& row = rows[i];
    table.row({row.name, stages ? fmt::format("{}", row.stage) : std::string(),
               row.in_first ? format_seconds(row.first) : "-",
               row.in_second ? format_seconds(row.second) : "-", signed_seconds(row.difference())});
  }
  std::string text = "\n" + table.text(colour);
  if (rows.size() > top) text += fmt::format("… {} more (--top)\n", rows.size() - top);
  return text;
}

ExitCode run_compare(const CompareFlags& flags) {
  const Result<StepReport> first = read_report(flags.first);
  const Result<StepReport> second = read_report(flags.second);
  if (!first || !second) {
    Diagnostics problems;
    for (const Result<StepReport>* each : {&first, &second}) {
      if (each->ok()) continue;
      problems.insert(problems.end(), each->problems().begin(), each->problems().end());
    }
    fmt::print(stderr, "{}", to_string(problems));
    return ExitCode::bad_input;
  }
  if (first->step_time <= Seconds(0)) {
    fmt::print(stderr, "{}",
               to_string(Diagnostics{
                   {flags.first, 0, 0, "/step_time_s", "is not above zero", "measure a step"}}));
    return ExitCode::bad_input;
  }
  const sim::Comparison found = sim::compare(*first, *second);
  if (flags.json) {
    fmt::print("{}", comparison_json(found));
  } else {
    const bool colour = wants_colour();
    const auto top = static_cast<std::size_t>(flags.top);
    const auto name = [](const char* letter, const StepReport& r) {
      return fmt::format("{}  {}, {}, {}, {}: {}\n", letter, r.origin, r.model, r.cluster, r.engine,
                         format_seconds(r.step_time));
    };
    fmt::print("{}{}B takes {:+.1f} % of A's time; peak memory {} against {}\n", name("A", *first),
               name("B", *second), 100 * found.relative(), format_bytes(found.first_peak),
               format_bytes(found.second_peak));
    fmt::print("{}{}{}", rows_text("part of the step", found.parts, top, false, colour),
               rows_text("exposed communication", found.axes, top, false, colour),
               rows_text("operation", found.operations, top, true, colour));
  }
  const bool apart = flags.tolerance >= 0 && std::abs(found.relative()) > flags.tolerance;
  return apart ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_compare(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "compare", "Two reports, joined by operation and sorted by what makes the difference");
  auto flags = std::make_shared<CompareFlags>();
  verb->add_option("A", flags->first, "A report.json")->required()->type_name("FILE");
  verb->add_option("B", flags->second, "Another")->required()->type_name("FILE");
  verb->add_option("--top", flags->top, "Rows of each table (20)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  verb->add_option("--tolerance", flags->tolerance,
                   "Exit with 1 when the step times are further apart than this share")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SHARE");
  verb->add_flag("--json", flags->json, "The same facts for a program, all rows");
  verb->footer(
      "Examples\n"
      "  shardwise compare predicted.json measured.json\n"
      "  shardwise compare fsdp2.json megatron_fsdp.json --top 5\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 further apart than the tolerance   2 bad input or use   3 the world broke");
  verb->callback([&run, flags] { run = [flags] { return run_compare(*flags); }; });
}

}  // namespace shardwise::cli
