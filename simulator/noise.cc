#include "simulator/noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/search/goodput.h"
#include "simulator/random.h"
#include "simulator/shared_engine.h"

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

/// Tiers that leave a node, and how many links of them a node has.
struct NodeLinks {
  std::array<bool, kMaxTiers> leaves{};
  std::int64_t count = 0;
};
NodeLinks node_links(const ClusterSpec& cluster) {
  NodeLinks links;
  for (std::size_t i = 1; i < cluster.tiers.size() && i < kMaxTiers; ++i) {
    links.leaves[i] = cluster.tiers[i - 1].domain_size >= cluster.gpus_per_node;
    if (!links.leaves[i] || links.count > 0) continue;
    links.count = ceil_div(cluster.gpus_per_node, std::int64_t{cluster.tiers[i].gpus_per_link});
  }
  return links;
}

/// Share of a link's rate that the best protocol reaches: a transfer that asks for so much has its
/// bytes on the link all the time.
double reached(const LinkTier& tier) {
  const CollectiveCoefficients& c = tier.collectives.coefficients;
  const double most = std::max(c.simple_share, c.ll128_share);
  return most > 0 ? std::min(1.0, most) : 1;
}

/// By how many times their link share transfers of each rank take longer, since links of its node
/// are gone in a trial: while a byte is on a link it takes n / (n - f) times as long.
std::vector<TierFactors> rerouted(const Plan& plan, std::int64_t failed, std::uint64_t seed) {
  const NodeLinks links = node_links(plan.cluster);
  const std::int64_t ranks = plan.layout.world();
  const std::int64_t per_node = plan.cluster.gpus_per_node;
  std::vector<std::int64_t> left(static_cast<std::size_t>(ceil_div(ranks, per_node)), links.count);
  for (std::uint64_t draw = 0; failed > 0; ++draw) {
    // Seeds of another row than slowdowns'.
    const double drawn = uniform(mixed(seed, 1), draw) * static_cast<double>(left.size());
    std::int64_t& node = left[static_cast<std::size_t>(drawn)];
    if (node == 1) continue;
    --node;
    --failed;
  }
  std::vector<TierFactors> delays(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < delays.size(); ++r) {
    const std::int64_t there = left[r / static_cast<std::size_t>(per_node)];
    const double more = static_cast<double>(links.count - there) / static_cast<double>(there);
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      if (links.leaves[tier]) delays[r][tier] = more / reached(plan.cluster.tiers[tier]);
    }
  }
  return delays;
}

}  // namespace

std::int64_t spare_links(const Plan& plan) {
  const NodeLinks links = node_links(plan.cluster);
  const std::int64_t nodes = ceil_div(plan.layout.world(), plan.cluster.gpus_per_node);
  return nodes > 1 ? nodes * std::max<std::int64_t>(0, links.count - 1) : 0;
}

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
                         const NoiseRules& rules) {
  SimulationOptions every = options;
  every.all_ranks = true;
  Simulation made = simulate(plan, every);
  std::vector<double> steps;
  for (std::int64_t trial = 0; trial < rules.trials; ++trial) {
    made.work.noise.seed =
        mixed(static_cast<std::uint64_t>(rules.seed), static_cast<std::uint64_t>(trial));
    made.work.noise.jitter = rules.jitter;
    made.work.noise.compute_factor = slowdowns(plan, rules, made.work.noise.seed);
    if (rules.failed_links > 0) {
      made.work.noise.link_delay = rerouted(plan, rules.failed_links, made.work.noise.seed);
    }
    const Timeline timeline = options.contention ? run_shared(made.work) : run_alone(made.work);
    steps.push_back(timeline.length());
  }
  NoiseSpread spread;
  spread.trials = rules.trials;
  spread.seed = rules.seed;
  spread.p50 = Seconds(quantile(steps, 0.5));
  spread.p95 = Seconds(quantile(steps, 0.95));
  if (rules.mtbf_hours_per_gpu > 0) {
    FailureRun run;
    run.mtbf = rules.mtbf_hours_per_gpu * 3600 / static_cast<double>(plan.layout.world());
    run.checkpoint = std::max(1.0, made.report.checkpoint_write.value());
    run.restart = rules.restart_minutes * 60;
    run.interval = best_goodput({Seconds(run.mtbf), Seconds(run.checkpoint), Seconds(run.restart)})
                       .interval.value();
    spread.goodput =
        simulated_goodput(run, kFailures, mixed(static_cast<std::uint64_t>(rules.seed), 0));
  }
  return spread;
}

}  // namespace shardwise::sim
