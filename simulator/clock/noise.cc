#include "simulator/clock/noise.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/search/advice/goodput.h"
#include "planner/spec/text/mixed_bits.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/workload/random.h"

namespace shardwise::sim {
namespace {

constexpr std::int64_t kFailures = 2000;

double quantile(std::vector<double> sorted, double q) {
  std::sort(sorted.begin(), sorted.end());
  const auto at = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(at, 1, sorted.size()) - 1];
}

/// How much longer each rank computes in a trial.
std::vector<double> slowdowns(const Plan& plan, const NoiseRules& rules, std::uint64_t seed) {
  const std::int64_t ranks = plan.layout.world();
  const std::int64_t per_node = std::max<std::int64_t>(1, plan.cluster.gpus_per_node);
  const std::int64_t nodes = ceil_div(ranks, per_node);
  std::vector<double> factors(static_cast<std::size_t>(ranks), 1.0);
  // The first nodes of a random order.
  std::vector<std::int64_t> order;
  for (std::int64_t n = 0; n < nodes; ++n) order.push_back(n);
  for (std::int64_t n = 0; n < std::min(rules.slow_nodes, nodes); ++n) {
    const double drawn = uniform(seed, static_cast<std::uint64_t>(n));
    const auto other = n + static_cast<std::int64_t>(drawn * static_cast<double>(nodes - n));
    std::swap(order[static_cast<std::size_t>(n)], order[static_cast<std::size_t>(other)]);
    const std::int64_t first = order[static_cast<std::size_t>(n)] * per_node;
    for (std::int64_t r = first; r < std::min(ranks, first + per_node); ++r) {
      factors[static_cast<std::size_t>(r)] = rules.slow_factor;
    }
  }
  return factors;
}

/// Share of the model's replicas that ranks can hold which are not cut off.
double replicas_without(const Plan& plan, std::int64_t cut_off) {
  const Layout& layout = plan.layout;
  const std::int64_t ranks = std::int64_t{layout.tp} * layout.cp * layout.pp;
  const std::int64_t replicas = (layout.world() - cut_off) / ranks;
  return static_cast<double>(replicas) / static_cast<double>(layout.dp());
}

}  // namespace

double simulated_goodput(const FailureRun& run, std::int64_t failures, std::uint64_t seed) {
  double useful = 0;
  double wall = 0;
  for (std::int64_t f = 0; f < failures; ++f) {
    // Failures strike while a restart runs as well; then it begins again.
    double until = -run.mtbf * std::log(1 - uniform(seed, static_cast<std::uint64_t>(f)));
    wall += until;
    until -= f == 0 ? 0 : run.restart;
    if (until > 0) useful += std::floor(until / (run.interval + run.checkpoint)) * run.interval;
  }
  return wall > 0 ? useful / wall : 1;
}

NoiseSpread noise_spread(const Plan& plan, const SimulationOptions& options,
                         const NoiseRules& rules, const std::function<void(std::int64_t)>& say) {
  SimulationOptions every = options;
  every.all_ranks = true;
  Simulation made = simulate(plan, every);
  std::vector<double> steps;
  NoiseSpread spread;
  spread.trials = rules.trials;
  spread.seed = rules.seed;
  double kept = 0;  // share of the model's replicas that go on, over all trials
  for (std::int64_t trial = 0; trial < rules.trials; ++trial) {
    if (say && trial > 0) say(trial);
    made.work.noise.seed =
        mixed(static_cast<std::uint64_t>(rules.seed), static_cast<std::uint64_t>(trial));
    made.work.noise.jitter = rules.jitter;
    made.work.noise.compute_factor = slowdowns(plan, rules, made.work.noise.seed);
    if (rules.failed.links > 0 || rules.failed.switches > 0) {
      // Seeds of another row than slowdowns'.
      NetworkLeft left = network_left(plan, rules.failed, mixed(made.work.noise.seed, 1));
      if (left.cut_off > 0) {
        ++spread.stopped;
        spread.cut_off_gpus = std::max(spread.cut_off_gpus, left.cut_off);
        kept += replicas_without(plan, left.cut_off);
        continue;
      }
      made.work.noise.link_delay = std::move(left.delays);
    }
    kept += 1;
    const Timeline timeline = options.contention ? run_shared(made.work) : run_alone(made.work);
    steps.push_back(timeline.length());
  }
  if (!steps.empty()) {
    spread.p50 = Seconds(quantile(steps, 0.5));
    spread.p95 = Seconds(quantile(steps, 0.95));
  }
  if (rules.mtbf_hours_per_gpu > 0) {
    FailureRun run;
    run.mtbf = rules.mtbf_hours_per_gpu * 3600 / static_cast<double>(plan.layout.world());
    run.checkpoint = std::max(1.0, made.report.checkpoint_write.value());
    run.restart = rules.restart_minutes * 60;
    run.interval = best_goodput({Seconds(run.mtbf), Seconds(run.checkpoint), Seconds(run.restart)})
                       .interval.value();
    spread.goodput =
        simulated_goodput(run, kFailures, mixed(static_cast<std::uint64_t>(rules.seed), 0)) * kept /
        static_cast<double>(rules.trials);
  }
  return spread;
}

}  // namespace shardwise::sim
