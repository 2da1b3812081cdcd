#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/flags/job_flags.h"
#include "cli/flags/screen_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/texts/size_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/model/parameter_words.h"
#include "planner/question/asked_size.h"
#include "planner/search/advice/sizing.h"
#include "planner/search/advice/sizing_json.h"
#include "planner/spec/text/format.h"

namespace shardwise::cli {
namespace {

struct SizeFlags {
  AskedSize asked;
  std::int64_t top = 0;  // 0: as many as the first screen has room for
  ScreenFlags screen;
};

ExitCode run_size(const SizeFlags& flags) {
  const Result<SizeQuestion> question = read_question(flags.asked);
  if (!question) return refuse(question.problems());
  const Subject& subject = question->subject;
  const SizingGoal& goal = question->goal;
  Progress progress;
  Sizing sizing =
      size_purchase(question->clusters, goal, best_step(subject.model, subject.job, subject.engine),
                    [&](const SizingProgress& at) {
                      progress.say(fmt::format("{} of {} clusters, {} on {} GPUs", at.clusters_done,
                                               at.clusters, at.cluster, format_count(at.gpus)));
                    });
  progress.clear();
  sizing.assumptions.insert(sizing.assumptions.end(), question->assumptions.begin(),
                            question->assumptions.end());

  SizingScreen screen;
  if (flags.top > 0) screen.top = static_cast<std::size_t>(flags.top);
  screen.whole = flags.screen.whole;
  fmt::print("{}", flags.screen.json ? to_json(sizing, goal, reported_parameters(subject.model))
                                     : sizing_text(sizing, goal, screen, wants_colour()));
  return sizing.offers.empty() ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_size(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("size", "Clusters that train a model in time, cheapest first");
  auto flags = std::make_shared<SizeFlags>();
  add_job_flags(*verb, flags->asked.job, JobScope::many_clusters);
  verb->add_option("--cluster", flags->asked.clusters,
                   "Catalogue name or cluster file; repeatable [all of the catalogue]")
      ->type_name("NAME|FILE");
  add_number(*verb, "--tokens", flags->asked.tokens, 1, 1e18,
             "Tokens of the whole training, for example 15e12")
      ->required();
  add_number(*verb, "--days", flags->asked.days, 1e-3, 36500, "Days until training must end")
      ->required()
      ->type_name("DAYS");
  add_integer(*verb, "--max-gpus", flags->asked.most_gpus, 1, kMostGpus,
              "Most GPUs of a cluster [16384]");
  add_number(*verb, "--restart-minutes", flags->asked.restart_minutes, 0, 1e5,
             "Time from a failure to the next step [10]")
      ->type_name("MIN");
  add_number(*verb, "--mtbf-hours", flags->asked.mtbf_hours, 1, 1e9,
             "Mean time between failures of a GPU, if its cluster states none [50677]")
      ->type_name("H");
  add_integer(*verb, "--top", flags->top, 1, 10'000, "Offers to print [12]");
  add_screen_flags(*verb, flags->screen);
  show_first(*verb,
             {"--model", "--tokens", "--days", "--cluster", "--engine", "--sequence-length",
              "--global-batch-size", "--precision", "--max-gpus", "--top", "--long", "--json"});
  verb->footer(
      "Examples\n"
      "  shardwise size --model llama-3.1-8b --tokens 1e12 --days 30\n"
      "  shardwise size --model llama-3.1-70b --tokens 15e12 --days 90 \\\n"
      "      --cluster dgx-h100 --cluster dgx-b200 --sequence-length 8192\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 nothing is in time   2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_size(*flags); }; });
}

}  // namespace shardwise::cli
