#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <span>
#include <tuple>

#include "cli/plan_request.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/report_text.h"
#include "cli/summary_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/write_file.h"
#include "planner/cost/estimate.h"
#include "planner/search/relief.h"
#include "planner/search/search.h"
#include "planner/search/why_not.h"
#include "planner/spec/command_line.h"
#include "planner/spec/format.h"
#include "planner/spec/number_flags.h"
#include "planner/spec/plan.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kWidth = 80;

ExitCode refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return ExitCode::bad_input;
}

/// Rows of one count of GPUs. What a report says of the first holds for the others in proportion:
/// they do the same work in another time.
std::vector<PlanRow> rows_of(const PlanQuestion& q, std::span<const Candidate> candidates,
                             const ClusterSpec& cluster) {
  std::vector<PlanRow> rows;
  if (candidates.empty()) return rows;
  const auto engine = [&](const Candidate& c) {
    return q.engines[static_cast<std::size_t>(c.engine)];
  };
  const StepReport first =
      estimate(q.model, cluster, q.job, *engine(candidates.front()), candidates.front().layout);
  for (const Candidate& candidate : candidates) {
    const double longer = candidate.cost.step_time / first.step_time;
    rows.push_back({candidate, &cluster, engine(candidate)->name, first.mfu / longer,
                    first.tokens_per_s / longer, first.dollars_per_1e9_tokens * longer});
  }
  return rows;
}

/// What rows over several counts of GPUs are ranked by, least first.
double value_of(Objective objective, const PlanRow& row) {
  switch (objective) {
    case Objective::step_time:
      return row.candidate.cost.step_time.value();
    case Objective::memory:
      return static_cast<double>(row.candidate.cost.point.value());
    case Objective::cost:
    case Objective::tokens_per_dollar:
      return row.dollars_per_1e9_tokens;
  }
  return 0;
}

PlanAnswer answer_of(const PlanQuestion& q, const PlanFlags& flags,
                     const std::vector<SearchResult>& results) {
  PlanAnswer answer;
  answer.usable = results.front().usable;
  answer.counts = results.front().counts;
  answer.held = results.front().held;
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::ranges::move(rows_of(q, results[r].best, q.clusters[r]), std::back_inserter(answer.best));
    std::ranges::move(rows_of(q, results[r].front, q.clusters[r]),
                      std::back_inserter(answer.front));
    for (std::size_t e = 0; r > 0 && e < answer.counts.size(); ++e) {
      answer.counts[e] += results[r].counts[e];
    }
  }
  std::ranges::stable_sort(answer.best, {},
                           [&](const PlanRow& row) { return value_of(q.objective, row); });
  if (answer.best.size() > static_cast<std::size_t>(flags.top)) {
    answer.best.resize(static_cast<std::size_t>(flags.top));
  }
  std::ranges::stable_sort(answer.front, {}, [](const PlanRow& row) {
    return std::tuple(row.candidate.cost.point, row.candidate.cost.step_time);
  });
  // Over several counts, rows of one front may be beaten by rows of another.
  double least = 1e300;
  std::erase_if(answer.front, [&](const PlanRow& row) {
    const double time = row.candidate.cost.step_time.value();
    const bool beaten = time >= least;
    least = std::min(least, time);
    return beaten;
  });
  return answer;
}

void write_plan(const PlanQuestion& q, const PlanRow& best, const std::string& path) {
  const Plan plan = {q.model, *best.cluster, q.job,
                     *q.engines[static_cast<std::size_t>(best.candidate.engine)],
                     best.candidate.layout};
  write_file(path, to_json(plan));
}

/// No layout fits: how far from it the smallest is, and what would help.
ExitCode say_nothing_fits(const PlanQuestion& q, const PlanFlags& flags,
                          const std::vector<SearchResult>& results, PlanAnswer answer) {
  const SearchResult& last = results.back();
  const std::size_t at = results.size() - 1;
  std::int64_t legal = 0;
  for (const SearchCounts& counts : last.counts) legal += counts.space.legal;
  if (legal == 0) {
    Diagnostics reasons = why_none_is_legal(q.request(flags, at));
    if (reasons.empty()) {
      reasons.push_back({"command line", 0, 0, "--space", "no legal layout in the usual space",
                         "use --space full"});
    }
    return refuse(reasons);
  }
  const bool risky = !last.risky.empty();
  const Candidate& smallest = risky ? last.risky.front() : *last.smallest;
  answer.smallest = rows_of(q, {&smallest, 1}, q.clusters[at]);
  Progress progress;
  const std::optional<Relief> relief = cheapest_relief(
      q.request(flags, at), [&](const std::string& what) { progress.say("trying " + what); });
  progress.clear();
  if (relief) answer.cheapest_change = to_string(*relief);
  if (flags.screen.json) {
    fmt::print("{}", plan_json(q, answer, nullptr));
    return ExitCode::nothing_fits;
  }
  const bool colour = wants_colour();
  const std::string line =
      risky ? fmt::format("Nothing fits for sure: up to {} of {} in the best layout at risk",
                          format_bytes(smallest.cost.upper), format_bytes(last.usable))
            : fmt::format("Nothing fits: the smallest layout takes {} of {}, {} too much",
                          format_bytes(smallest.cost.upper), format_bytes(last.usable),
                          format_bytes(smallest.cost.upper - last.usable));
  fmt::print("{}\n\n{}\n{}", paint(line, Tone::bad, colour),
             layouts_text(answer.smallest, q.engines.size() > 1, colour),
             counts_text(last.counts, colour));
  const std::string change = answer.cheapest_change.value_or("no single change makes it fit");
  fmt::print("\n{}\n", wrap("Cheapest change: " + change, kWidth, 2));
  return ExitCode::nothing_fits;
}

void print_answer(const PlanQuestion& q, const PlanFlags& flags, const PlanAnswer& answer,
                  const StepReport& report, bool colour) {
  const ClusterSpec& cluster = *answer.best.front().cluster;
  std::vector<std::string> engines;
  for (const EngineProfile* engine : q.engines) engines.push_back(engine->name);
  const std::string heading = fmt::format(
      "{} on {} GPU{} of {}, {}, batch {} x {} tokens", q.model.name, format_count(cluster.gpus),
      cluster.gpus == 1 ? "" : "s", cluster.name, fmt::join(engines, ", "),
      format_count(q.job.global_batch_size), format_count(q.job.sequence_length));
  fmt::print("{}\n\n", paint(wrap(heading, kWidth), Tone::quiet, colour));
  fmt::print("{}\n{}", layouts_text(answer.best, engines.size() > 1, colour),
             counts_text(answer.counts, colour));
  for (const Assumption& each : q.assumptions) {
    fmt::print("{}\n", paint(wrap("assumed: " + each.text, kWidth), Tone::quiet, colour));
  }
  if (flags.pareto) {
    fmt::print("\n{}\n{}", paint("Pareto front of memory and time", Tone::strong, colour),
               layouts_text(answer.front, engines.size() > 1, colour));
  }
  if (flags.explain) fmt::print("{}", rules_text(answer, colour));
  fmt::print("\n{}", verdict_text(report, colour));
  if (flags.screen.whole || flags.explain) {
    fmt::print("{}{}{}", memory_text(report, colour), time_text(report, colour),
               rates_text(report, colour));
  } else {
    fmt::print("{}{}{}", costs_text(report, colour), short_rates_text(report, colour),
               more_text(report, "memory by phase, every part of the time", colour));
  }
  if (flags.explain) fmt::print("{}", explanation_text(report, colour));
  if (!flags.output.empty()) fmt::print("\nwrote {}\n", flags.output);
}

ExitCode run_plan(const PlanFlags& flags) {
  const Result<PlanQuestion> question = read_question(flags);
  if (!question) return refuse(question.problems());
  const PlanQuestion& q = *question;
  const bool colour = wants_colour();

  std::vector<SearchResult> results;
  Progress progress;
  for (std::size_t i = 0; i < q.clusters.size(); ++i) {
    SearchRequest request = q.request(flags, i);
    request.progress = [&](const SearchProgress& p) {
      progress.say(fmt::format("{} layouts, {:.0f} % of the space", format_count(p.evaluated),
                               100.0 * static_cast<double>(p.items_done) /
                                   static_cast<double>(std::max<std::int64_t>(1, p.items))));
    };
    Result<SearchResult> found = search(request);
    if (!found) return refuse(found.problems());
    results.push_back(*std::move(found));
  }
  progress.clear();

  const PlanAnswer answer = answer_of(q, flags, results);
  if (answer.best.empty()) return say_nothing_fits(q, flags, results, answer);

  const PlanRow& best = answer.best.front();
  if (!q.why_not.empty()) {
    const auto cluster = static_cast<std::size_t>(best.cluster - q.clusters.data());
    const Result<WhyNot> why = why_not(q.request(flags, cluster), best.candidate, q.why_not);
    if (!why) return refuse(why.problems());
    fmt::print("{}", flags.screen.json ? why_not_json(*why) : why_not_text(*why, colour));
    return ExitCode::done;
  }
  StepReport report = estimate(
      q.model, *best.cluster, q.job, *q.engines[static_cast<std::size_t>(best.candidate.engine)],
      best.candidate.layout, flags.explain ? Detail::explained : Detail::numbers);
  report.verdict.usable = answer.usable;
  if (!flags.output.empty()) write_plan(q, best, flags.output);
  if (flags.screen.json) {
    fmt::print("{}", plan_json(q, answer, &report));
  } else {
    print_answer(q, flags, answer, report, colour);
  }
  return ExitCode::done;
}

}  // namespace

void add_plan(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("plan", "All layouts of a cluster, ranked; writes the best as plan.json");
  auto flags = std::make_shared<PlanFlags>();
  add_job_flags(*verb, flags->job);
  verb->get_option("--engine")->description("One, several with a comma between, or all");
  verb->get_option("--gpus")->description("How many (one node); several with a comma between");
  const auto option = [&](const char* name, auto& value, const char* type, const char* text) {
    verb->add_option(name, value, text)->type_name(type)->group("Search");
  };
  option("-o,--output", flags->output, "FILE", "Write the best layout as plan.json");
  option("--rank-by", flags->rank_by, "WHAT",
         "step_time, memory, cost or tokens_per_dollar (step_time)");
  option("--lock", flags->locks, "FIELD=VALUE", "Only layouts with this value; repeatable");
  option("--open", flags->opened, "FIELD", "Every value of a field; repeatable");
  option("--space", flags->space, "usual|full", "usual, or full: every value of every field");
  option("--max-memory", flags->max_memory, "SIZE", "Of a GPU, for example 70GiB");
  option("--why-not", flags->why_not, "FIELD=VALUE,…", "Why the best layout has other values");
  add_integer(*verb, "--top", flags->top, 1, 10'000, "Layouts in the table (10)")->group("Search");
  add_integer(*verb, "--threads", flags->threads, 1, 1024, "Threads (all cores)")->group("Search");
  verb->add_flag("--pareto", flags->pareto, "The front of memory and time")->group("Search");
  verb->add_flag("--explain", flags->explain, "What the rules dropped, and every formula")
      ->group("Search");
  add_screen_flags(*verb, flags->screen);
  show_first(*verb, {"--model", "--cluster", "--gpus", "--engine", "--sequence-length",
                     "--global-batch-size", "--lock", "--why-not", "--pareto", "--output", "--long",
                     "--json"});
  verb->footer(
      "Examples\n"
      "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json\n"
      "  shardwise plan --model llama-3.1-8b --cluster dgx-h100 --engine all \\\n"
      "      --lock pp=1\n"
      "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 \\\n"
      "      --why-not tp=4,pp=2\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 nothing fits   2 bad input or use   3 the world broke");
  verb->callback([&run, flags] { run = [flags] { return run_plan(*flags); }; });
}

}  // namespace shardwise::cli
