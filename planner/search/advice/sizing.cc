#include "planner/search/advice/sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "planner/engines/executed.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/search/advice/best_layout.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

constexpr double kSecondsPerHour = 3600;

double mtbf_hours(const ClusterSpec& cluster, const SizingGoal& goal) {
  return cluster.mtbf_hours_per_gpu > 0 ? cluster.mtbf_hours_per_gpu : goal.default_mtbf_hours;
}

/// Whether so many GPUs at peak speed, never failing, would be in time.
bool can_be_in_time(const ClusterSpec& cluster, std::int64_t gpus, const SizingGoal& goal) {
  const double peak = cluster.gpu.peak(goal.precision).value() * static_cast<double>(gpus);
  return goal.work.value() <= peak * goal.deadline.value();
}

/// Measured machines first, each kind cheapest first; where no price is known, by GPU-hours after
/// all that have one.
bool is_better_offer(const SizingOffer& a, const SizingOffer& b) {
  if (a.measured != b.measured) return a.measured;
  if ((a.dollars > 0) != (b.dollars > 0)) return a.dollars > 0;
  if (a.dollars != b.dollars) return a.dollars < b.dollars;
  if (a.gpu_hours != b.gpu_hours) return a.gpu_hours < b.gpu_hours;
  if (a.cluster != b.cluster) return a.cluster < b.cluster;
  return a.gpus < b.gpus;
}

void state_assumptions(const std::vector<ClusterSpec>& clusters, const SizingGoal& goal,
                       Sizing& sizing) {
  sizing.assumptions.push_back(
      {"sizing.restart",
       fmt::format("a failure stops training for {} and loses the steps since the last checkpoint",
                   format_seconds(goal.restart)),
       "stated with --restart-minutes"});
  std::vector<std::string> silent;
  for (const ClusterSpec& cluster : clusters) {
    if (cluster.mtbf_hours_per_gpu <= 0) silent.push_back(cluster.name);
  }
  std::map<double, std::vector<std::string>> stated;
  for (const ClusterSpec& cluster : clusters) {
    if (cluster.mtbf_hours_per_gpu > 0) {
      stated[cluster.mtbf_hours_per_gpu].push_back(cluster.name);
    }
  }
  for (const auto& [hours, names] : stated) {
    const auto one = std::ranges::find(clusters, names.front(), &ClusterSpec::name);
    sizing.assumptions.push_back({"sizing.mtbf.stated",
                                  fmt::format("one failure in {:.0f} GPU-hours on {}: {}", hours,
                                              fmt::join(names, ", "), one->mtbf_source),
                                  one->mtbf_source});
  }
  if (!silent.empty()) {
    sizing.assumptions.push_back(
        {"sizing.mtbf",
         fmt::format("one failure in {:.0f} GPU-hours on {}", goal.default_mtbf_hours,
                     fmt::join(silent, ", ")),
         "Llama 3 (arXiv:2407.21783), section 3.3.4: 419 unexpected interruptions in 54 days on "
         "16,384 GPUs"});
  }
  sizing.assumptions.push_back({"sizing.price",
                                "list prices of a GPU-hour as dated in the catalogue, storage and "
                                "staff not counted",
                                "configs/gpus, configs/clusters"});
}

}  // namespace

std::vector<std::int64_t> gpu_counts(const ClusterSpec& cluster, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (std::int64_t power = 1; power <= most; power *= 2) {
    for (const std::int64_t count : {power, power / 2 * 3}) {
      if (count < 1 || count > most) continue;
      const bool whole_nodes = count % cluster.gpus_per_node == 0;
      const bool part_of_node = count < cluster.gpus_per_node && cluster.gpus_per_node % count == 0;
      if (whole_nodes || part_of_node) counts.push_back(count);
    }
    // Nodes whose size is not a power of two: doublings of whole nodes.
    const std::int64_t nodes = power * cluster.gpus_per_node;
    if (nodes <= most) counts.push_back(nodes);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

SizingOffer price_offer(const ClusterSpec& cluster, const StepReport& report,
                        const SizingGoal& goal) {
  SHARDWISE_CHECK(report.tokens_per_s > 0, "a report without speed");
  SizingOffer offer;
  offer.cluster = cluster.name;
  offer.gpu = cluster.gpu.name;
  offer.gpus = cluster.gpus;
  offer.report = report;
  offer.borrowed = borrowed_curves(cluster, {goal.precision, goal.experts});
  offer.measured = counts_as_measured(offer.borrowed);
  const double gpus = static_cast<double>(cluster.gpus);
  // A checkpoint that takes no time at all would be taken all the time.
  const Seconds checkpoint(std::max(report.checkpoint_write.value(), 1.0));
  offer.goodput = best_goodput(
      {Seconds(mtbf_hours(cluster, goal) * kSecondsPerHour / gpus), checkpoint, goal.restart});
  const double useful = static_cast<double>(goal.tokens) / report.tokens_per_s;
  offer.wall = Seconds(useful / offer.goodput.share);
  offer.gpu_hours = offer.wall.value() / kSecondsPerHour * gpus;
  offer.dollars = gpu_hour_price(cluster).value_or(0) * offer.gpu_hours;
  const double usable = static_cast<double>(report.verdict.usable.value());
  offer.headroom = usable > 0 ? 1 - static_cast<double>(report.verdict.upper.value()) / usable : 0;
  offer.in_time = offer.wall <= goal.deadline;
  return offer;
}

BestStep best_step(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine) {
  return [&](const ClusterSpec& cluster) {
    const BestQuestion question{&model, &cluster, &job, &engine, executor_trains_on(cluster),
                                {},     {}};
    return best_layout(question).report;
  };
}

Sizing size_purchase(const std::vector<ClusterSpec>& clusters, const SizingGoal& goal,
                     const BestStep& best, const SaySizing& progress) {
  Sizing sizing;
  std::size_t clusters_done = 0;
  for (const ClusterSpec& kind : clusters) {
    std::optional<SizingOffer> fastest;
    int in_time = 0;
    int dearer = 0;  // offers in a row
    std::optional<double> least;
    bool any_tried = false;
    for (const std::int64_t count : gpu_counts(kind, std::min(goal.most_gpus, kMostGpus))) {
      if (dearer >= 2) break;
      if (!can_be_in_time(kind, count, goal)) continue;
      any_tried = true;
      ClusterSpec cluster = kind;
      cluster.gpus = count;
      if (progress) progress({cluster.name, count, clusters_done, clusters.size()});
      const std::optional<StepReport> report = best(cluster);
      if (!report) continue;
      SizingOffer offer = price_offer(cluster, *report, goal);
      if (!fastest || offer.wall < fastest->wall) fastest = offer;
      if (!offer.in_time) continue;
      ++in_time;
      const double cost = offer.dollars > 0 ? offer.dollars : offer.gpu_hours;
      dearer = least && cost >= *least ? dearer + 1 : 0;
      least = std::min(cost, least.value_or(cost));
      sizing.offers.push_back(std::move(offer));
    }
    if (!any_tried) {
      sizing.refusals.push_back(
          {kind.name, fmt::format("too late at peak speed on {} GPUs",
                                  format_count(std::min(goal.most_gpus, kMostGpus)))});
    } else if (!fastest) {
      sizing.refusals.push_back({kind.name, "no layout fits its memory"});
    } else if (in_time == 0) {
      sizing.refusals.push_back(
          {kind.name, fmt::format("{} at best, on {} GPUs", format_seconds(fastest->wall),
                                  format_count(fastest->gpus))});
      sizing.late.push_back(std::move(*fastest));
    }
    ++clusters_done;
  }
  std::sort(sizing.offers.begin(), sizing.offers.end(), is_better_offer);
  std::sort(sizing.late.begin(), sizing.late.end(),
            [](const SizingOffer& a, const SizingOffer& b) { return a.wall < b.wall; });
  state_assumptions(clusters, goal, sizing);
  return sizing;
}

}  // namespace shardwise
