#include "answers/growth.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/legality/legality.h"
#include "planner/question/flags.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {
namespace {

/// The same step with a shard a node, where the shards divide into such.
Plan hybrid_of(const Plan& full, std::int64_t node) {
  Plan hybrid = full;
  Layout& layout = hybrid.layout;
  const std::int64_t inner = std::int64_t{layout.tp} * layout.cp;
  const std::int64_t shard = std::max<std::int64_t>(1, node / inner);
  if (layout.dp_shard % shard == 0) {
    layout.dp_replicate = static_cast<std::int32_t>(layout.dp_shard / shard);
    layout.dp_shard = static_cast<std::int32_t>(shard);
  }
  return hybrid;
}

}  // namespace

Result<std::vector<GrowthPoint>> growth(const AskedStep& asked, std::int64_t node,
                                        std::int64_t most) {
  if (most < node) {
    return wrong_flag("--growth", fmt::format("{} GPUs are fewer than a node's", most),
                      fmt::format("a node has {}", node));
  }
  std::vector<GrowthPoint> points;
  AskedStep grown = asked;
  const SimulationOptions options = options_of(asked);
  for (std::int64_t gpus = node; gpus <= most; gpus *= 2) {
    grown.job.gpus = fmt::format("{}", gpus);
    Result<PlannedStep> read = read_step(grown);
    if (!read) return read.problems();
    Plan& full = read->plan;
    set_network(grown, full);
    Diagnostics problems = step_problems(grown, full);
    if (!problems.empty()) return problems;
    const Plan hybrid = hybrid_of(full, node);
    problems = check_layout(hybrid.model, hybrid.cluster, hybrid.job, hybrid.engine, hybrid.layout);
    if (!problems.empty()) return problems;
    points.push_back({gpus, simulate(full, options).report, simulate(hybrid, options).report});
  }
  return points;
}

std::vector<std::int64_t> misfits(const std::vector<GrowthPoint>& points,
                                  StepReport GrowthPoint::*way) {
  std::vector<std::int64_t> gpus;
  for (const GrowthPoint& point : points) {
    if ((point.*way).verdict.fit == Fit::does_not_fit) gpus.push_back(point.gpus);
  }
  return gpus;
}

}  // namespace shardwise::sim
