// What would help most. The levers of a cluster and the engines are questions of `plan`, one change
// each; a layout's own changes are priced by the step-time model alone.
#include "answers/helpful_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "planner/search/advice/faster_links.h"
#include "planner/search/advice/single_changes.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

constexpr double kTimesAsFast = 2;
constexpr Bytes kMoreMemory = 16_GiB;
constexpr std::size_t kMostOfLayout = 3;

class Changes {
 public:
  Changes(const PlanQuestion& question, const PlanAnswer& answer, const SayPlanning& say)
      : question_(question), best_(answer.best.front()), answer_(answer), say_(say) {}

  std::vector<HelpfulChange> take() {
    links();
    memory();
    gpus();
    engines();
    layout();
    std::ranges::stable_sort(made_, std::ranges::greater(), &HelpfulChange::faster);
    return std::move(made_);
  }

 private:
  /// A question on one cluster, of the engine that leads.
  PlanQuestion with_cluster(ClusterSpec cluster) const {
    PlanQuestion q = question_;
    q.clusters = {std::move(cluster)};
    q.engines = {engine()};
    q.takes_engine = q.front = false;
    q.top = 1;
    q.known_step = nullptr;
    return q;
  }
  const EngineProfile* engine() const {
    return question_.engines[static_cast<std::size_t>(best_.candidate.engine)];
  }

  void add(std::string text, std::string flags, const PlanRow& row) {
    const double faster = 1 - row.step() / best_.step();
    const bool estimated = best_.simulated && !row.simulated;
    made_.push_back({std::move(text), std::move(flags), row.step(), estimated,
                     row.candidate.cost.point, faster, row.dollars_per_1e9_tokens});
  }
  /// Asks, and keeps the best layout where one fits.
  void ask(std::string text, std::string flags, ClusterSpec cluster) {
    if (say_) say_("trying " + text);
    const PlanQuestion q = with_cluster(std::move(cluster));
    const Result<PlanAnswer> found = sim::answer(q);
    if (!found || found->best.empty()) return;
    add(std::move(text), std::move(flags), found->best.front());
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
  void engines() {
    for (const EngineAnswer& each : answer_.engines) {
      if (!each.best || each.engine == engine()) continue;
      add("engine " + each.engine->name, "--engine " + each.engine->name, *each.best);
    }
  }
  /// Changes of the layout that make it faster: the space has not all values of every field.
  void layout() {
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
                       true, each.cost.point, 1 - left, left * best_.dollars_per_1e9_tokens});
    }
  }

  const PlanQuestion& question_;
  const PlanRow& best_;
  const PlanAnswer& answer_;
  const SayPlanning& say_;
  std::vector<HelpfulChange> made_;
};

}  // namespace

std::vector<HelpfulChange> helpful_changes(const PlanQuestion& question, const PlanAnswer& answer,
                                           const SayPlanning& say) {
  return Changes(question, answer, say).take();
}

}  // namespace shardwise::sim
