#include "gui/models/scaling_model.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "planner/cost/estimate.h"
#include "planner/search/search.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

constexpr int kDoublings = 3;  // to either side

ScalingPoint best_on(const Plan& plan, const ClusterSpec& cluster, const std::stop_token& stop) {
  ScalingPoint point;
  point.gpus = cluster.gpus;
  SearchRequest request;
  request.model = &plan.model;
  request.cluster = &cluster;
  request.job = &plan.job;
  request.engines = {&plan.engine};
  request.top = 1;
  request.front = false;
  request.stop = stop;
  const Result<SearchResult> found = search(request);
  if (!found) {
    point.why_none = found.problems().front().message;
    return point;
  }
  if (found->best.empty()) {
    const std::optional<Candidate>& smallest = found->smallest;
    point.why_none = smallest ? "the smallest layout takes " + format_bytes(smallest->cost.point)
                              : "no layout is legal";
    return point;
  }
  const Candidate& best = found->best.front();
  const StepReport report = estimate(plan.model, cluster, plan.job, plan.engine, best.layout);
  point.layout = best.layout;
  point.memory = report.verdict.point;
  point.time = report.step_time;
  point.mfu = report.mfu;
  point.tokens_per_s = report.tokens_per_s;
  point.dollars_per_1e9_tokens = report.dollars_per_1e9_tokens;
  return point;
}

}  // namespace

void scale(const Plan& plan, const std::stop_token& stop,
           const std::function<void(ScalingPoint)>& found) {
  for (int doubling = -kDoublings; doubling <= kDoublings; ++doubling) {
    const std::int64_t factor = std::int64_t{1} << std::abs(doubling);
    const std::int64_t gpus =
        doubling < 0 ? plan.cluster.gpus / factor : plan.cluster.gpus * factor;
    if (gpus < 1 || (doubling < 0 && plan.cluster.gpus % factor != 0)) continue;
    const Result<ClusterSpec> cluster = with_gpus(plan.cluster, gpus);
    if (!cluster) continue;  // the machines do not come in such a number
    ScalingPoint point = best_on(plan, *cluster, stop);
    if (stop.stop_requested()) return;
    found(std::move(point));
  }
}

double efficiency(const std::vector<ScalingPoint>& points, const ScalingPoint& point) {
  const auto first = std::ranges::find_if(
      points, [](const ScalingPoint& each) { return each.layout.has_value(); });
  if (first == points.end() || !point.layout) return 0;
  const auto each = [](const ScalingPoint& of) {
    return of.tokens_per_s / static_cast<double>(of.gpus);
  };
  return each(point) / each(*first);
}

}  // namespace shardwise::view
