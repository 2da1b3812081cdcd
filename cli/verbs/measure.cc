#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answers/asked_plan.h"
#include "answers/best_plans.h"
#include "answers/plan_words.h"
#include "cli/flags/job_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/texts/report_text.h"
#include "cli/texts/summary_text.h"
#include "cli/verbs.h"
#include "cli/verbs/measured_plans.h"
#include "cli/verbs/other_program.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/files/atomic_file_set.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/table.h"
#include "simulator/clock/simulate.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kUsualPlans = 10;

struct MeasureFlags {
  sim::AskedPlan asked;  // `top` is how many are trained
  std::int64_t steps = 20;
  std::string data;
  std::string output;
  bool json = false;
};

/// Where plans and reports lie: the folder that was asked for, or one that goes with this.
class Folder {
 public:
  explicit Folder(const std::string& asked) : path_(asked), kept_(!asked.empty()) {
    if (kept_) {
      std::filesystem::create_directories(path_);
      return;
    }
    path_ = (std::filesystem::temp_directory_path() / "shardwise-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      throw IoError(fmt::format("{}: {}", path_, std::strerror(errno)));
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code lost;
    if (!kept_) std::filesystem::remove_all(path_, lost);
  }
  std::string file(const char* kind, std::size_t number) const {
    return (std::filesystem::path(path_) / fmt::format("{}{}.json", kind, number)).string();
  }

 private:
  std::string path_;
  bool kept_;
};

/// The first line of what a program said, without its own name.
std::string first_line(const std::string& said) {
  const std::string line = said.substr(0, said.find('\n'));
  const std::string name = fmt::format("{}: ", kTrain.name);
  return line.starts_with(name) ? line.substr(name.size()) : line;
}

/// Trains a plan. What refuses it leaves it unmeasured. \throws IoError  where it broke
void train(const MeasureFlags& flags, const Folder& folder, std::size_t number,
           MeasuredPlan& plan) {
  const std::string report = folder.file("measured", number);
  std::vector<std::string> words = {folder.file("plan", number), "--steps",
                                    std::to_string(flags.steps), "--report", report};
  if (!flags.data.empty()) words.insert(words.end(), {"--data", flags.data});
  const EndedProgram ended = run_to_end(kTrain, words);
  if (ended.exit_code == static_cast<int>(ExitCode::bad_input)) {
    plan.refused = first_line(ended.said);
    return;
  }
  if (ended.exit_code != 0) {
    throw IoError(ended.exit_code < 0 ? fmt::format("{} was ended by a signal", kTrain.name)
                                      : fmt::format("{}: {}", kTrain.name, first_line(ended.said)));
  }
  Result<StepReport> measured = read_report(report);
  if (!measured) throw IoError(to_string(measured.problems()));
  plan.measured = *std::move(measured);
}

ExitCode run_measure(const MeasureFlags& flags) {
  sim::AskedPlan asked = flags.asked;
  const Result<sim::PlanQuestion> question = sim::read_question(asked);
  if (!question) return refuse(question.problems());
  const sim::PlanQuestion& q = *question;
  if (!installed(kTrain)) return ExitCode::world_broke;
  const std::size_t most = asked.top > 0 ? static_cast<std::size_t>(asked.top) : kUsualPlans;
  Progress progress;
  const Result<std::vector<sim::PlanRow>> best =
      sim::best_plans(q, most, [&](const std::string& what) { progress.say(what); });
  progress.clear();
  if (!best) return refuse(sim::with_executed_hint(q, best.problems()));
  if (best->empty()) {
    fmt::print(stderr, "shardwise: no layout fits (shardwise plan says what would)\n");
    return ExitCode::nothing_fits;
  }

  const Folder folder(flags.output);
  std::vector<MeasuredPlan> plans;
  for (const sim::PlanRow& row : *best) {
    const std::size_t number = plans.size() + 1;
    progress.say(fmt::format("plan {} of {}", number, best->size()));
    const Plan plan = sim::plan_of(q, row);
    MeasuredPlan measured;
    measured.row = row;
    measured.predicted = sim::simulate(plan).report;
    write_file(folder.file("plan", number), to_json(plan));
    write_file(folder.file("predicted", number), report_json(measured.predicted));
    train(flags, folder, number, measured);
    plans.push_back(std::move(measured));
  }
  progress.clear();
  if (flags.json) {
    fmt::print("{}", measured_json(plans, flags.steps));
    return ExitCode::done;
  }
  const bool colour = wants_colour();
  const std::string heading =
      sim::question_words(q, *best->front().cluster, {best->front().engine});
  fmt::print("{}\n{}{}", paint(wrap(heading, kTextWidth), Tone::quiet, colour),
             measured_text(plans, colour), assumed_text(q.assumptions, colour));
  return ExitCode::done;
}

}  // namespace

void add_measure(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "measure", "Train the best layouts on this machine, beside their predictions");
  auto flags = std::make_shared<MeasureFlags>();
  add_job_flags(*verb, flags->asked.job);
  verb->get_option("--engine")
      ->description("One, several with a comma between, or all [the fastest that runs today]");
  const auto option = [&](const char* name, auto& value, const char* type, const char* text) {
    return verb->add_option(name, value, text)->type_name(type)->group("Search");
  };
  option("--lock", flags->asked.locks, "FIELD=VALUE", "Only layouts with this value; repeatable");
  option("--open", flags->asked.opened, "FIELD", "Search every value of this field; repeatable");
  option("--space", flags->asked.space, "usual|full", "usual, or full: every value of every field");
  add_integer(*verb, "--top", flags->asked.top, 1, 10'000, "Layouts to train [10]")
      ->group("Search");
  add_integer(*verb, "--steps", flags->steps, 2, 1'000'000, "Steps to train each [20]");
  verb->add_option("--data", flags->data, "Text or token file to train on [a short text]")
      ->type_name("FILE");
  verb->add_option("-o,--output", flags->output, "Keep plans, predictions and reports here")
      ->type_name("DIR");
  verb->add_flag("--json", flags->json, "Print the same facts for a program");
  show_first(*verb, {"--model", "--cluster", "--gpus", "--sequence-length", "--global-batch-size",
                     "--lock", "--open", "--top", "--steps", "--data", "--output", "--json"});
  verb->footer(
      "Examples\n"
      "  shardwise-run calibrate --ranks 4 -o machine.json\n"
      "  shardwise measure --model llama-tiny --cluster machine.json --gpus 4 \\\n"
      "      --sequence-length 128 --global-batch-size 16\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 nothing fits   2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_measure(*flags); }; });
}

}  // namespace shardwise::cli
