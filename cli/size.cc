#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/job_flags.h"
#include "cli/progress.h"
#include "cli/screen_flags.h"
#include "cli/size_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/cost/flops.h"
#include "planner/model/parameter_words.h"
#include "planner/search/default_batch.h"
#include "planner/search/sizing.h"
#include "planner/search/sizing_json.h"
#include "planner/spec/catalogue.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/command_line.h"
#include "planner/spec/format.h"
#include "planner/spec/number_flags.h"

namespace shardwise::cli {
namespace {

struct SizeFlags {
  AskedJob job;
  std::vector<std::string> clusters;
  double tokens = 0;
  double days = 0;
  double restart_minutes = 10;
  double mtbf_hours = 50677;
  std::int64_t most_gpus = 16384;
  std::int64_t top = 0;  // 0: as many as the first screen has room for
  ScreenFlags screen;
};

/// The clusters asked for, else all of the catalogue that train on accelerators.
Result<std::vector<ClusterSpec>> read_clusters(const std::vector<std::string>& asked) {
  const std::vector<std::string> names = asked.empty() ? catalogue_names("clusters") : asked;
  std::vector<ClusterSpec> clusters;
  Diagnostics problems;
  for (const std::string& name : names) {
    Result<ClusterSpec> cluster = find_cluster(name);
    if (!cluster) {
      problems.insert(problems.end(), cluster.problems().begin(), cluster.problems().end());
    } else if (!asked.empty() || cluster->gpu.vendor != "cpu") {
      clusters.push_back(*std::move(cluster));
    }
  }
  if (!problems.empty()) return problems;
  return clusters;
}

/// The job is read beside the first cluster that computes in its precision; one that does not is
/// never in time. The first of all when none does.
std::size_t first_that_computes(const std::vector<ClusterSpec>& clusters, const AskedJob& job) {
  const auto text = job.texts.find("precision");
  const bool given = text != job.texts.end() && !text->second.empty();
  const DType asked = given ? dtype_from_name(text->second).value_or(DType::bf16) : DType::bf16;
  const auto at = std::ranges::find_if(
      clusters, [&](const ClusterSpec& cluster) { return cluster.gpu.peak(asked).value() > 0; });
  return at == clusters.end() ? 0 : static_cast<std::size_t>(at - clusters.begin());
}

ExitCode run_size(const SizeFlags& flags) {
  Diagnostics problems;
  Result<std::vector<ClusterSpec>> clusters = read_clusters(flags.clusters);
  if (!clusters) {
    problems.insert(problems.end(), clusters.problems().begin(), clusters.problems().end());
    return refuse(problems);
  }
  AskedJob job_flags = flags.job;
  const std::size_t judge = first_that_computes(*clusters, flags.job);
  job_flags.cluster = flags.clusters.empty() ? (*clusters)[judge].name : flags.clusters[judge];
  Result<Subject> subject = read_subject(job_flags);
  if (!subject) {
    problems.insert(problems.end(), subject.problems().begin(), subject.problems().end());
  }
  if (!problems.empty()) return refuse(problems);

  JobSpec& job = subject->job;
  Assumption batch;
  if (job.global_batch_size == 0) {
    job.global_batch_size = default_batch(subject->cluster, job);
    batch = batch_assumption(subject->cluster, job);
  }
  SizingGoal goal;
  goal.tokens = static_cast<std::int64_t>(flags.tokens);
  goal.deadline = Seconds(flags.days * 86400);
  goal.most_gpus = flags.most_gpus;
  goal.restart = Seconds(flags.restart_minutes * 60);
  goal.default_mtbf_hours = flags.mtbf_hours;
  goal.precision = job.precision;
  goal.experts = subject->model.num_experts > 0;
  goal.work = model_flops(subject->model, job).causal *
              (flags.tokens / static_cast<double>(job.sequence_length));

  Progress progress;
  Sizing sizing =
      size_purchase(*clusters, goal, best_step(subject->model, job, subject->engine),
                    [&](const SizingProgress& at) {
                      progress.say(fmt::format("{} of {} clusters, {} on {} GPUs", at.clusters_done,
                                               at.clusters, at.cluster, format_count(at.gpus)));
                    });
  progress.clear();
  if (!batch.id.empty()) sizing.assumptions.push_back(batch);
  sizing.assumptions.push_back(
      {"sizing.model", fmt::format("{}: {}", subject->model.name, parameters_words(subject->model)),
       "docs/models.md, Counts"});
  for (const Assumption& each : subject->assumptions) sizing.assumptions.push_back(each);

  SizingScreen screen;
  if (flags.top > 0) screen.top = static_cast<std::size_t>(flags.top);
  screen.whole = flags.screen.whole;
  fmt::print("{}", flags.screen.json ? to_json(sizing, goal, reported_parameters(subject->model))
                                     : sizing_text(sizing, goal, screen, wants_colour()));
  return sizing.offers.empty() ? ExitCode::nothing_fits : ExitCode::done;
}

}  // namespace

void add_size(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("size", "Clusters that train a model in time, cheapest first");
  auto flags = std::make_shared<SizeFlags>();
  add_job_flags(*verb, flags->job, JobScope::many_clusters);
  verb->add_option("--cluster", flags->clusters,
                   "Catalogue name or cluster file; repeatable [all of the catalogue]")
      ->type_name("NAME|FILE");
  add_number(*verb, "--tokens", flags->tokens, 1, 1e18,
             "Tokens of the whole training, for example 15e12")
      ->required();
  add_number(*verb, "--days", flags->days, 1e-3, 36500, "Days until training must end")
      ->required()
      ->type_name("DAYS");
  add_integer(*verb, "--max-gpus", flags->most_gpus, 1, kMostGpus,
              "Most GPUs of a cluster [16384]");
  add_number(*verb, "--restart-minutes", flags->restart_minutes, 0, 1e5,
             "Time from a failure to the next step [10]")
      ->type_name("MIN");
  add_number(*verb, "--mtbf-hours", flags->mtbf_hours, 1, 1e9,
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
