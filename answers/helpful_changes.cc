// What would help most. The levers of a cluster and the engines are questions of `plan`, one change
// each; a layout's own changes are priced by the step-time model alone.
#include "answers/helpful_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "planner/estimate/gpu_hour_price.h"
#include "planner/search/advice/best_layout.h"
#include "planner/search/advice/faster_links.h"
#include "planner/search/advice/single_changes.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search_threads.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::sim {
namespace {

constexpr double kTimesAsFast = 2;
constexpr Bytes kMoreMemory = 16_GiB;
constexpr std::size_t kMostOfLayout = 3;

class Changes {
 public:
  Changes(const PlanQuestion& question, const PlanAnswer& answer, const Trying& trying)
      : question_(question), best_(answer.best.front()), answer_(answer), trying_(trying) {}

  std::vector<HelpfulChange> take() {
    links();
    memory();
    gpus();
    clusters();
    engines();
    layout();
    std::ranges::stable_sort(made_, std::ranges::greater(), &HelpfulChange::faster);
    return std::move(made_);
  }

 private:
  /// A question on one cluster, of one engine.
  PlanQuestion asked(ClusterSpec cluster, const EngineProfile* engine) const {
    PlanQuestion q = question_;
    q.clusters = {std::move(cluster)};
    q.engines = {engine};
    q.takes_engine = q.front = false;
    q.top = 1;
    q.known_step = nullptr;
    return q;
  }
  const EngineProfile* engine() const {
    return question_.engines[static_cast<std::size_t>(best_.candidate.engine)];
  }

  /// \param question  that the row is an answer of
  void add(std::string text, std::string flags, const PlanQuestion& question, const PlanRow& row) {
    const double faster = 1 - row.step() / best_.step();
    const bool estimated = best_.simulated && !row.simulated;
    made_.push_back({std::move(text), std::move(flags), row.step(), estimated,
                     row.candidate.cost.point, faster, row.dollars_per_1e9_tokens,
                     plan_of(question, row)});
  }
  /// Asks, and keeps the best layout where one fits.
  void ask(std::string text, std::string flags, const PlanQuestion& q) {
    if (trying_.stop.stop_requested()) return;
    if (trying_.say) trying_.say("trying " + text);
    const Result<PlanAnswer> found = sim::answer(q);
    if (!found || found->best.empty()) return;
    add(std::move(text), std::move(flags), q, found->best.front());
  }
  void ask(std::string text, std::string flags, ClusterSpec cluster) {
    ask(std::move(text), std::move(flags), asked(std::move(cluster), engine()));
  }

  void links() {
    for (std::size_t tier = 0; tier < reached_tiers(*best_.cluster); ++tier) {
      ClusterSpec cluster = with_bandwidth(*best_.cluster, tier, kTimesAsFast);
      const LinkTier& link = cluster.tiers[tier];
      std::string text =
          fmt::format("{} x {}: {}", link.name, kTimesAsFast, format_bandwidth(link.bandwidth));
      ask(std::move(text), "", std::move(cluster));
    }
  }
  void memory() {
    if (question_.max_memory > Bytes(0)) return;  // what may be used is less than there is
    ClusterSpec cluster = *best_.cluster;
    cluster.gpu.hbm_bytes += kMoreMemory;
    std::string text = fmt::format("memory + {}: {} a GPU", format_bytes(kMoreMemory),
                                   format_bytes(cluster.gpu.hbm_bytes));
    ask(std::move(text), "", std::move(cluster));
  }
  void gpus() {
    const std::int64_t twice = 2 * best_.cluster->gpus;
    Result<ClusterSpec> cluster = with_gpus(*best_.cluster, twice);
    if (!cluster) return;  // it comes in no such number
    ask(fmt::format("{} GPUs", format_count(twice)), fmt::format("--gpus {}", twice),
        *std::move(cluster));
  }
  /// Another cluster with as many GPUs, and what the step-time model says of its best layout.
  struct Other {
    ClusterSpec cluster;
    double step = std::numeric_limits<double>::infinity();     // seconds
    double dollars = std::numeric_limits<double>::infinity();  // of a step, times 3600
  };
  Other other(const std::string& name) const {
    Other made;
    Result<ClusterSpec> found = find_cluster(name);
    if (found) found = with_gpus(*std::move(found), best_.cluster->gpus);
    if (!found || found->gpu.vendor == "cpu" || found->name == best_.cluster->name) return made;
    made.cluster = *std::move(found);
    const BestLayout best = best_layout({&question_.model, &made.cluster, &question_.job, engine(),
                                         false, std::make_shared<SearchMemory>(), trying_.stop});
    if (!best.report || best.report->verdict.fit != Fit::fits) return made;
    made.step = best.report->step_time.value();
    const std::optional<double> price = gpu_hour_price(made.cluster);
    if (price) made.dollars = *price * made.step;
    return made;
  }
  /// The fastest of the catalogue and the cheapest: one that is neither helps nobody.
  void clusters() {
    const bool others = !question_.executed && question_.max_memory == Bytes(0) &&
                        best_.cluster->gpu.vendor != "cpu";
    if (!others || trying_.stop.stop_requested()) return;
    if (trying_.say) trying_.say("trying other clusters");
    const std::vector<std::string> names = catalogue_names("clusters");
    std::vector<Other> all(names.size());
    share_out(thread_count(question_.threads), names.size(), trying_.stop,
              [&](int, std::size_t i) { all[i] = other(names[i]); });
    if (all.empty()) return;
    const auto ask_about = [&](const Other& each, const char* word) {
      ask(fmt::format("cluster {} ({})", each.cluster.name, word),
          fmt::format("--cluster {}", each.cluster.name), each.cluster);
    };
    const auto fastest = std::ranges::min_element(all, {}, &Other::step);
    const auto cheapest = std::ranges::min_element(all, {}, &Other::dollars);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    if (fastest->step < kNone) ask_about(*fastest, "fastest");
    if (cheapest->dollars < kNone && cheapest != fastest) ask_about(*cheapest, "cheapest");
  }
  void engines() {
    for (const EngineAnswer& each : answer_.engines) {
      if (!each.best || each.engine == engine()) continue;
      add("engine " + each.engine->name, "--engine " + each.engine->name, question_, *each.best);
    }
    for (const EngineProfile* const each : trying_.engines) {
      const bool known = std::ranges::any_of(question_.engines, [&](const EngineProfile* engine) {
        return engine->name == each->name;
      });
      if (known || question_.executed) continue;
      ask("engine " + each->name, "--engine " + each->name, asked(*best_.cluster, each));
    }
  }
  /// Changes of the layout that make it faster: the space has not all values of every field.
  void layout() {
    if (trying_.stop.stop_requested()) return;
    const Plan plan = plan_of(question_, best_);
    std::vector<Neighbour> near =
        neighbours(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, answer_.usable);
    std::erase_if(near, [&](const Neighbour& each) {
      return each.change.rounds_gradients || each.time_gained <= Seconds(0) ||
             fit_of(each.cost, answer_.usable) != Fit::fits;
    });
    std::ranges::stable_sort(near, std::ranges::greater(), &Neighbour::time_gained);
    if (near.size() > kMostOfLayout) near.resize(kMostOfLayout);
    for (const Neighbour& each : near) {
      const double left = 1 - each.time_gained / best_.candidate.cost.step_time;
      made_.push_back({"the layout with " + each.change.text, each.change.text, left * best_.step(),
                       true, each.cost.point, 1 - left, left * best_.dollars_per_1e9_tokens, plan});
      made_.back().plan.layout = each.change.layout;
    }
  }

  const PlanQuestion& question_;
  const PlanRow& best_;
  const PlanAnswer& answer_;
  const Trying& trying_;
  std::vector<HelpfulChange> made_;
};

}  // namespace

std::string little_help_words(const std::vector<HelpfulChange>& changes) {
  std::vector<std::string> little;
  std::vector<std::string> slower;
  for (const HelpfulChange& each : changes) {
    if (each.faster >= kLeastHelp) continue;
    const bool same = each.faster > -kLeastHelp;
    (same ? little : slower)
        .push_back(same ? each.text
                        : fmt::format("{} ({})", each.text, signed_percent(-each.faster)));
  }
  std::vector<std::string> parts;
  if (!little.empty()) {
    parts.push_back(fmt::format("less than {} faster or slower: {}", format_percent(kLeastHelp),
                                fmt::join(little, "; ")));
  }
  if (!slower.empty()) parts.push_back(fmt::format("slower: {}", fmt::join(slower, "; ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<HelpfulChange> helpful_changes(const PlanQuestion& question, const PlanAnswer& answer,
                                           const Trying& trying) {
  return Changes(question, answer, trying).take();
}

}  // namespace shardwise::sim
