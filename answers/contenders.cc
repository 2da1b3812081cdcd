#include "answers/contenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "planner/estimate/gpu_hour_price.h"
#include "planner/question/catalogue_summary.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

/// "dgx" of "dgx-h100": who sells it.
std::string_view maker(std::string_view name) { return name.substr(0, name.find('-')); }

/// Clusters with a price, each of another GPU than the plan's.
std::vector<ClusterSpec> priced_clusters(const Plan& plan) {
  std::vector<ClusterSummary> known = cluster_summaries();
  // Of one kind of GPU, the machines of the same maker stand for all.
  std::stable_partition(known.begin(), known.end(), [&](const ClusterSummary& each) {
    return maker(each.name) == maker(plan.cluster.name);
  });
  std::set<std::string> gpus = {plan.cluster.gpu.name};
  std::vector<ClusterSpec> found;
  for (const ClusterSummary& each : known) {
    if (!each.dollars_per_gpu_hour || gpus.contains(each.gpu)) continue;
    const Result<ClusterSpec> cluster = find_cluster(each.name);
    if (!cluster || cluster->gpu.peak(plan.job.precision).value() <= 0) continue;
    Result<ClusterSpec> as_many = with_gpus(*cluster, plan.cluster.gpus);
    if (!as_many) continue;
    gpus.insert(each.gpu);
    found.push_back(*std::move(as_many));
  }
  return found;
}

}  // namespace

std::vector<Contender> contenders_of(const Plan& plan, std::size_t others) {
  const auto gpus = [](std::int64_t count) {
    return fmt::format("{} GPU{}", format_count(count), count == 1 ? "" : "s");
  };
  std::vector<Contender> contenders = {{gpus(plan.cluster.gpus), plan.cluster, true}};
  for (const std::int64_t count : {plan.cluster.gpus / 2, plan.cluster.gpus * 2}) {
    if (count < 1 || (count < plan.cluster.gpus && plan.cluster.gpus % 2 != 0)) continue;
    Result<ClusterSpec> cluster = with_gpus(plan.cluster, count);
    if (cluster) contenders.push_back({gpus(count), *std::move(cluster), true});
  }
  if (!gpu_hour_price(plan.cluster)) return contenders;
  const auto distance = [&](const ClusterSpec& cluster) {
    const double ratio =
        cluster.gpu.peak(plan.job.precision) / plan.cluster.gpu.peak(plan.job.precision);
    return std::abs(std::log(ratio));
  };
  std::vector<ClusterSpec> clusters = priced_clusters(plan);
  std::ranges::stable_sort(clusters, {}, distance);
  clusters.resize(std::min(clusters.size(), others));
  for (ClusterSpec& cluster : clusters) {
    std::string name = cluster.name;
    contenders.push_back({std::move(name), std::move(cluster), false});
  }
  return contenders;
}

}  // namespace shardwise::sim
