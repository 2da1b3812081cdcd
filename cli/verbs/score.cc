#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "answers/html/accuracy_page.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/screen_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/files/atomic_file_set.h"
#include "planner/score/interval_fit.h"
#include "planner/score/interval_text.h"
#include "planner/score/rows/row.h"
#include "planner/score/score.h"
#include "planner/score/score_json.h"
#include "planner/score/score_text.h"
#include "planner/spec/json/reader.h"
#include "simulator/clock/simulate.h"

namespace shardwise::cli {
namespace {

struct ScoreFlags {
  std::vector<std::string> files;
  std::string source;
  std::string explain;
  bool rows = false;
  bool simulate = false;
  bool intervals = false;
  std::string output;
  ScreenFlags screen;
};

/// Rows of all files, or everything wrong with any of them.
Result<std::vector<Row>> read_files(const ScoreFlags& flags) {
  std::vector<Row> rows;
  Diagnostics problems;
  for (const std::string& file : flags.files) {
    const Result<std::string> text = read_file(file);
    Result<std::vector<Row>> some =
        text ? read_rows(*text, file) : Result<std::vector<Row>>(text.problems());
    if (!some) {
      problems.insert(problems.end(), some.problems().begin(), some.problems().end());
      continue;
    }
    for (Row& row : *some) {
      if (!flags.source.empty() && row.source() != flags.source) continue;
      if (!flags.explain.empty() && row.id != flags.explain) continue;
      rows.push_back(std::move(row));
    }
  }
  if (!problems.empty()) return problems;
  return rows;
}

/// The step on the virtual clock; the batch is read as the closed form says.
Seconds simulated_step(const Plan& plan, const StepReport& report) {
  return sim::simulated_length(plan) + report.time.input_exposed;
}

ScoreReport scored(const std::vector<Row>& rows, bool simulate) {
  Progress progress;
  const auto say = [&](std::size_t done) {
    progress.say(fmt::format("{} of {} rows", done, rows.size()));
  };
  return score(rows, simulate ? StepTimer(simulated_step) : StepTimer(), say);
}

std::vector<NamedFile> named_inputs(const ScoreFlags& flags) {
  std::vector<NamedFile> inputs;
  for (const std::string& file : flags.files) inputs.push_back({"FILE", file});
  return inputs;
}

/// What predictions are off by, as the intervals that estimates print.
ExitCode calibrate_intervals(const ScoreFlags& flags, const ScoreReport& report, bool colour) {
  const IntervalTable table = fit_intervals(residuals_of(report));
  if (!flags.output.empty()) write_file(flags.output, interval_table_json(table));
  fmt::print("{}", flags.screen.json ? interval_table_json(table) : to_text(table, colour));
  return ExitCode::done;
}

std::string page_of(const ScoreFlags& flags, const ScoreReport& report) {
  std::string command = "shardwise score";
  for (const std::string& file : flags.files) command += " " + file;
  if (flags.simulate) command += " --simulate";
  return sim::accuracy_page({&report, command + " -o " + flags.output, SHARDWISE_VERSION});
}

ExitCode run_score(const ScoreFlags& flags) {
  const Diagnostics outputs =
      prepare_outputs({{"--output", flags.output}}, named_inputs(flags), flags.screen.json);
  if (!outputs.empty()) return refuse(outputs);
  const Result<std::vector<Row>> rows = read_files(flags);
  if (!rows) return refuse(rows.problems());
  const auto missing = [&](std::string_view flag, const std::string& value) {
    fmt::print(stderr, "shardwise score: {} {}: no row has this name\n", flag, value);
    return ExitCode::bad_input;
  };
  if (rows->empty() && !flags.explain.empty()) return missing("--explain", flags.explain);
  if (rows->empty() && !flags.source.empty()) return missing("--source", flags.source);

  const bool colour = wants_colour();
  if (!flags.explain.empty()) {
    fmt::print("{}", explain_text(rows->front(), colour));
    return ExitCode::done;
  }
  const ScoreReport report = scored(*rows, flags.simulate);
  if (flags.intervals) return calibrate_intervals(flags, report, colour);
  if (!flags.output.empty()) write_file(flags.output, page_of(flags, report));
  const ScoreScreen screen = flags.rows           ? ScoreScreen::rows
                             : flags.screen.whole ? ScoreScreen::whole
                                                  : ScoreScreen::first;
  fmt::print("{}", flags.screen.json ? to_json(report) : to_text(report, screen, colour));
  return ExitCode::done;
}

}  // namespace

void add_score(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand("score", "Compare published measurements with predictions");
  auto flags = std::make_shared<ScoreFlags>();
  verb->add_option("files", flags->files, "Measurements, one JSON object per line")
      ->required()
      ->type_name("FILE");
  verb->add_option("--source", flags->source, "Only rows whose id begins with SOURCE/")
      ->type_name("SOURCE");
  verb->add_option("--explain", flags->explain, "Explain how one row was read and predicted")
      ->type_name("ID");
  verb->add_flag("--simulate", flags->simulate, "Predict step times with the simulator")
      ->excludes(verb->get_option("--explain"));
  verb->add_flag("--rows", flags->rows, "Print every row, and the rows left out");
  CLI::Option* intervals = verb->add_flag(
      "--intervals", flags->intervals,
      "Calibrate 90 % intervals on the rows; print how many they cover by source left out");
  intervals->excludes(verb->get_option("--explain"))->excludes(verb->get_option("--rows"));
  verb->add_option("-o,--output", flags->output,
                   "Write an accuracy page (.html), or with --intervals these as JSON")
      ->type_name("FILE")
      ->excludes(verb->get_option("--explain"));
  add_screen_flags(*verb, flags->screen);
  verb->footer(
      "Examples\n"
      "  shardwise score examples/public.jsonl\n"
      "  shardwise score examples/public.jsonl -o accuracy.html");
  verb->callback([&run, flags] { run = [flags] { return run_score(*flags); }; });
}

}  // namespace shardwise::cli
