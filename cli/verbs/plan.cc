#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "answers/asked_plan.h"
#include "answers/helpful_changes.h"
#include "answers/plan_answer.h"
#include "answers/plan_words.h"
#include "answers/why_not_text.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/screen_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/texts/levers_text.h"
#include "cli/texts/plan_text.h"
#include "cli/texts/report_text.h"
#include "cli/texts/summary_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/estimate/estimate.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/process_time.h"
#include "planner/question/field_values.h"
#include "planner/search/advice/why_not.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"
#include "simulator/clock/simulate.h"

namespace shardwise::cli {
namespace {

// Layouts of the first screen.
constexpr std::ptrdiff_t kScreenLines = 40;
constexpr std::size_t kFirstRows = 5;
constexpr std::size_t kFewestRows = 2;
constexpr std::size_t kFrontRows = 15;

struct PlanFlags {
  sim::AskedPlan asked;
  std::string output;
  bool pareto = false;
  bool explain = false;
  bool levers = false;
  ScreenFlags screen;
};

/// \param estimated   of the best layout, with what explains it
/// \param parts       where its step goes: simulated where the row is
/// \param proved      about all layouts
/// \param first_rows  layouts of the table, where neither --top nor --long says how many
std::string plan_answer_text(const sim::PlanQuestion& q, const PlanFlags& flags,
                             const sim::PlanAnswer& answer, const StepReport& estimated,
                             const StepReport& parts, const std::optional<sim::Certificate>& proved,
                             std::size_t first_rows, bool colour) {
  // One step for the screen: that of the table's first row.
  const StepReport report = with_step(estimated, answer.best.front().step());
  const std::string_view origin = answer.best.front().simulated ? "simulated" : "estimated";
  const ClusterSpec& cluster = *answer.best.front().cluster;
  std::vector<std::string> engines;
  for (const EngineProfile* engine : q.engines) engines.push_back(engine->name);
  if (q.takes_engine) engines = {answer.best.front().engine};
  const std::string heading = sim::question_words(q, cluster, engines);
  std::string text = paint(wrap(heading, kTextWidth), Tone::quiet, colour) + "\n";
  const bool whole = flags.screen.whole || flags.explain;
  std::vector<sim::PlanRow> rows = answer.best;
  if (!whole && flags.asked.top == 0 && rows.size() > first_rows) rows.resize(first_rows);
  text += fmt::format("{}", layouts_text(rows, engines.size() > 1, colour));
  text += fmt::format("{}{}", ranking_text(answer, rows, colour), counts_text(answer, colour));
  text += fmt::format("{}", assumed_text(q.assumptions, colour));
  const bool only_front = flags.pareto && !whole;  // for want of room, with the verdict
  if (!only_front) text += fmt::format("{}", engines_text(q, answer, whole, colour));
  if (flags.pareto) {
    text += fmt::format("{}", front_text(answer, engines.size() > 1,
                                         only_front ? kFrontRows : answer.front.size(), colour));
  }
  if (flags.explain) text += fmt::format("{}", rules_text(answer, colour));
  const bool tight = !whole && first_rows == kFewestRows;
  text += fmt::format("{}{}", tight ? "" : "\n", verdict_text(report, colour, !whole));
  const ReportIntervals known = sim::intervals_of(answer.best.front());
  text += fmt::format("{}", interval_text(report, known, colour));
  if (whole) {
    text += fmt::format("{}{}{}", memory_text(report, colour), time_text(parts, colour),
                        rates_text(report, known, origin, colour));
  } else {
    std::string costs = only_front ? "" : costs_text(parts, colour);
    if (tight && !costs.empty()) costs.erase(0, 1);  // the empty line before its heading
    text += fmt::format("{}{}{}", short_rates_text(report, origin, colour), costs,
                        more_text(report, "memory by phase, every part of the time", colour));
  }
  if (flags.explain) text += fmt::format("{}", explanation_text(report, colour));
  if (proved)
    text += (whole ? "\n" : "") + wrap(sim::certificate_words(*proved), kTextWidth, 2) + "\n";
  if (!flags.output.empty())
    text += fmt::format("{}wrote {}\n", whole ? "\n" : "", shown(flags.output, 500));
  return text;
}

/// Fewer layouts where the rest of the first screen is long.
std::string screen_text(const sim::PlanQuestion& q, const PlanFlags& flags,
                        const sim::PlanAnswer& answer, const StepReport& estimated,
                        const StepReport& parts, const std::optional<sim::Certificate>& proved,
                        bool colour) {
  std::string text;
  const bool any_length = flags.screen.whole || flags.explain || flags.asked.top > 0;
  const auto is_long = [&text] { return std::ranges::count(text, '\n') > kScreenLines; };
  for (std::size_t rows = kFirstRows; rows >= kFewestRows; --rows) {
    text = plan_answer_text(q, flags, answer, estimated, parts, proved, rows, colour);
    if (any_length || !is_long()) break;
  }
  // Empty lines go last.
  for (std::size_t at = 0; !any_length && is_long() && at != std::string::npos;) {
    at = text.find("\n\n", at);
    if (at != std::string::npos) text.erase(at, 1);
  }
  return text;
}

/// Notes what a limit of time prints once the plan is written, and what it says is missing. Half an
/// answer is for people: a program gets none.
void known_answer(std::optional<KnownAnswer>& known, const PlanFlags& flags,
                  const std::string& screen) {
  const std::string missing =
      flags.levers ? "only the levers are missing" : "only the proof of the best layout is missing";
  if (!flags.screen.json) {
    known.emplace(screen, missing);
  } else if (!flags.output.empty()) {
    known.emplace("", fmt::format("{} is written, {}", shown(flags.output, 500), missing));
  }
}

ExitCode run_plan(const PlanFlags& flags) {
  sim::AskedPlan asked = flags.asked;
  asked.front = flags.pareto || flags.screen.json;
  const Result<sim::PlanQuestion> question = sim::read_question(asked);
  if (!question) return refuse(question.problems());
  const Diagnostics outputs =
      prepare_outputs({{"--output", flags.output}}, files_of(flags.asked.job), flags.screen.json);
  if (!outputs.empty()) return refuse(outputs);
  const sim::PlanQuestion& q = *question;
  const bool colour = wants_colour();

  Progress progress;
  const Result<sim::PlanAnswer> found =
      sim::answer(q, [&](const std::string& what) { progress.say(what); });
  progress.clear();
  if (!found) return refuse(sim::with_executed_hint(q, found.problems()));
  const sim::PlanAnswer& answer = *found;
  if (answer.best.empty()) {
    const bool writes = !flags.output.empty() && flags.asked.why_not.empty();
    if (writes) write_file(flags.output, to_json(sim::plan_of(q, answer.nothing.nearest.front())));
    fmt::print("{}", flags.screen.json ? plan_json(q, answer, nullptr)
                                       : nothing_fits_text(q, answer, colour));
    if (writes && !flags.screen.json) {
      fmt::print("wrote {}, the layout above: it does not fit\n", shown(flags.output, 500));
    }
    return ExitCode::nothing_fits;
  }

  if (!flags.asked.why_not.empty()) {
    const FieldValues values = *read_values(flags.asked.why_not, "--why-not");
    const Result<WhyNot> why = sim::why_not(q, answer, values);
    if (!why) return refuse(why.problems());
    fmt::print("{}",
               flags.screen.json ? why_not_json(*why) : sim::why_not_text(*why, values, colour));
    return ExitCode::done;
  }
  const Plan plan = sim::plan_of(q, answer.best.front());
  StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout,
                               flags.explain ? Detail::explained : Detail::numbers);
  report.verdict.usable = answer.usable;
  report.verdict.fit = fit_of(report.verdict, answer.usable);
  const bool simulated = answer.best.front().simulated.has_value() && !flags.screen.json;
  const StepReport parts = simulated ? sim::simulate(plan).report : report;
  std::optional<KnownAnswer> known;
  {
    const LimitHeld held;
    if (!flags.output.empty()) write_file(flags.output, to_json(plan));
    known_answer(known, flags, screen_text(q, flags, answer, report, parts, {}, colour));
  }
  const auto say = [&](const std::string& what) { progress.say(what); };
  if (flags.levers) {
    const std::vector<sim::HelpfulChange> changes = sim::helpful_changes(q, answer, {say, {}, {}});
    known.reset();
    progress.clear();
    fmt::print("{}", flags.screen.json ? levers_json(answer, changes)
                                       : levers_text(q, answer, changes, colour));
    return ExitCode::done;
  }
  const std::optional<sim::Certificate> proved = sim::certify(q, answer, say);
  known.reset();
  progress.clear();
  fmt::print("{}", flags.screen.json
                       ? plan_json(q, answer, &report, proved ? &*proved : nullptr)
                       : screen_text(q, flags, answer, report, parts, proved, colour));
  return ExitCode::done;
}

}  // namespace

void add_plan(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("plan", "Rank all layouts of a cluster; write the best as plan.json");
  auto flags = std::make_shared<PlanFlags>();
  add_job_flags(*verb, flags->asked.job);
  verb->get_option("--engine")
      ->description("One, several with a comma between, or all [the fastest that runs today]");
  verb->get_option("--gpus")->description(
      "Number of GPUs [one node]; several with a comma between");
  const auto option = [&](const char* name, auto& value, const char* type, const char* text) {
    verb->add_option(name, value, text)->type_name(type)->group("Search");
  };
  option("-o,--output", flags->output, "FILE", "Write the best layout as plan.json");
  option("--rank-by", flags->asked.rank_by, "WHAT",
         "step_time, memory, cost or tokens_per_dollar [step_time]");
  option("--lock", flags->asked.locks, "FIELD=VALUE", "Only layouts with this value; repeatable");
  option("--open", flags->asked.opened, "FIELD", "Search every value of this field; repeatable");
  option("--space", flags->asked.space, "usual|full", "usual, or full: every value of every field");
  option("--max-memory", flags->asked.max_memory, "SIZE",
         "Memory a plan may use on each GPU, for example 70GiB");
  option("--why-not", flags->asked.why_not, "FIELD=VALUE,…",
         "Explain why the best layout has other values");
  verb->add_flag("--levers", flags->levers,
                 "Say what would help most: faster links, more memory, more GPUs, other clusters "
                 "and engines")
      ->group("Search");
  add_integer(*verb, "--top", flags->asked.top, 1, 10'000, "Layouts in the table [10]")
      ->group("Search");
  add_integer(*verb, "--threads", flags->asked.threads, 1, 1024, "Threads [all cores]")
      ->group("Search");
  verb->add_flag("--pareto", flags->pareto, "Print the Pareto front of memory and time")
      ->group("Search");
  verb->add_flag("--explain", flags->explain, "Print what the rules dropped, and every formula")
      ->group("Search");
  add_screen_flags(*verb, flags->screen);
  show_first(*verb, {"--model", "--cluster", "--gpus", "--engine", "--sequence-length",
                     "--global-batch-size", "--lock", "--why-not", "--levers", "--output", "--long",
                     "--json"});
  verb->footer(
      "Examples\n"
      "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json\n"
      "  shardwise plan --model llama-3.1-8b --cluster dgx-h100 --engine all \\\n"
      "      --lock pp=1\n"
      "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 \\\n"
      "      --why-not tp=4,pp=2\n"
      "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --levers\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 nothing fits   2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_plan(*flags); }; });
}

}  // namespace shardwise::cli
