#include "simulator/failed_links.h"

#include <algorithm>
#include <cstddef>

#include "simulator/links.h"
#include "simulator/random.h"

namespace shardwise::sim {
namespace {

/// Links that stand in for one another: the NICs of a node, or the up-links of a domain.
struct Bundle {
  std::int64_t ranks = 1;  // that send over one bundle: rank r over bundle r / ranks
  std::int64_t links = 0;  // in it
  TierFactors tiers{};     // by tier: what each link share of a transfer asks of the bundle
};

/// Share of a link's rate that the best protocol reaches: a transfer that asks for so much has its
/// bytes on the link all the time.
double reached(const LinkTier& tier) {
  const CollectiveCoefficients& c = tier.collectives.coefficients;
  const double most = std::max(c.simple_share, c.ll128_share);
  return most > 0 ? std::min(1.0, most) : 1;
}

std::vector<Bundle> bundles_of(const Plan& plan) {
  const ClusterSpec& cluster = plan.cluster;
  std::vector<Bundle> bundles;
  Bundle node;
  node.ranks = cluster.gpus_per_node;
  for (std::size_t i = 1; i < cluster.tiers.size() && i < kMaxTiers; ++i) {
    const LinkTier& tier = cluster.tiers[i];
    if (cluster.tiers[i - 1].domain_size < cluster.gpus_per_node) continue;
    node.tiers[i] = 1 / reached(tier);
    if (node.links == 0) node.links = ceil_div(node.ranks, std::int64_t{tier.gpus_per_link});
  }
  bundles.push_back(node);
  for (const LinkKind& kind : shared_links(cluster)) {
    if (!kind.up_link) continue;
    Bundle up;
    up.ranks = kind.ranks;
    up.links = static_cast<std::int64_t>(kind.capacity);
    const LinkTier& tier = cluster.tiers[kind.tier];
    up.tiers[kind.tier] = tier.oversubscription / reached(tier);
    bundles.push_back(up);
  }
  // Those with links to lose, where something lies outside them.
  std::erase_if(bundles, [&](const Bundle& each) {
    return each.links < 2 || plan.layout.world() <= each.ranks;
  });
  return bundles;
}

std::int64_t count_of(const Bundle& bundle, const Plan& plan) {
  return ceil_div(plan.layout.world(), bundle.ranks);
}

}  // namespace

std::int64_t spare_links(const Plan& plan) {
  std::int64_t spare = 0;
  for (const Bundle& each : bundles_of(plan)) spare += count_of(each, plan) * (each.links - 1);
  return spare;
}

std::vector<TierFactors> detours(const Plan& plan, std::int64_t failed, std::uint64_t seed) {
  const std::vector<Bundle> bundles = bundles_of(plan);
  std::vector<std::vector<std::int64_t>> left;
  std::int64_t links = 0;
  for (const Bundle& each : bundles) {
    left.emplace_back(static_cast<std::size_t>(count_of(each, plan)), each.links);
    links += count_of(each, plan) * each.links;
  }
  for (std::uint64_t draw = 0; failed > 0; ++draw) {
    auto drawn = static_cast<std::int64_t>(uniform(seed, draw) * static_cast<double>(links));
    std::size_t kind = 0;
    while (drawn >= count_of(bundles[kind], plan) * bundles[kind].links) {
      drawn -= count_of(bundles[kind], plan) * bundles[kind].links;
      ++kind;
    }
    std::int64_t& there = left[kind][static_cast<std::size_t>(drawn / bundles[kind].links)];
    if (there == 1) continue;
    --there;
    --failed;
  }
  std::vector<TierFactors> delays(static_cast<std::size_t>(plan.layout.world()));
  for (std::size_t kind = 0; kind < bundles.size(); ++kind) {
    const Bundle& bundle = bundles[kind];
    for (std::size_t r = 0; r < delays.size(); ++r) {
      const std::int64_t there = left[kind][r / static_cast<std::size_t>(bundle.ranks)];
      const auto gone = static_cast<double>(bundle.links - there);
      for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
        const double delay = bundle.tiers[tier] * gone / static_cast<double>(there);
        delays[r][tier] = std::max(delays[r][tier], delay);
      }
    }
  }
  return delays;
}

}  // namespace shardwise::sim
