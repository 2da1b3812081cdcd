#include "simulator/workload/failed_links.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/spec/text/mixed_bits.h"
#include "simulator/workload/links.h"
#include "simulator/workload/random.h"

namespace shardwise::sim {
namespace {

/// Nodes whose NICs of one number hang on one leaf switch, where the domain is that large.
/// Source: NVIDIA DGX SuperPOD reference architecture, H100, "Network Fabrics", Compute: groups of
/// 32 nodes are rail-aligned, with 8 leaf switches each.
constexpr std::int64_t kNodesOfASwitch = 32;

/// Links that stand in for one another: the NICs of a node, or the up-links of a domain.
struct Bundle {
  std::int64_t ranks = 1;  // that send over one bundle: rank r over bundle r / ranks
  std::int64_t links = 0;  // in it
  TierFactors tiers{};     // by tier: what each link share of a transfer asks of the bundle
  bool node = false;       // the NICs of one
};

/// Share of a link's rate that the best protocol reaches: a transfer that asks for so much has its
/// bytes on the link all the time.
double reached(const LinkTier& tier) {
  const CollectiveCoefficients& c = tier.collectives.coefficients;
  const double most = std::max(c.simple_share, c.ll128_share);
  return most > 0 ? std::min(1.0, most) : 1;
}

/// The NICs of a node.
Bundle node_of(const ClusterSpec& cluster) {
  Bundle node;
  node.ranks = cluster.gpus_per_node;
  node.node = true;
  for (std::size_t i = 1; i < cluster.tiers.size() && i < kMaxTiers; ++i) {
    const LinkTier& tier = cluster.tiers[i];
    if (cluster.tiers[i - 1].domain_size < cluster.gpus_per_node) continue;
    node.tiers[i] = 1 / reached(tier);
    if (node.links == 0) node.links = ceil_div(node.ranks, std::int64_t{tier.gpus_per_link});
  }
  return node;
}

/// Bundles with links to lose, where something lies outside them.
std::vector<Bundle> bundles_of(const Plan& plan) {
  const ClusterSpec& cluster = plan.cluster;
  std::vector<Bundle> bundles = {node_of(cluster)};
  for (const LinkKind& kind : shared_links(cluster)) {
    if (!kind.up_link) continue;
    Bundle up;
    up.ranks = kind.ranks;
    up.links = static_cast<std::int64_t>(kind.capacity);
    const LinkTier& tier = cluster.tiers[kind.tier];
    up.tiers[kind.tier] = tier.oversubscription / reached(tier);
    bundles.push_back(up);
  }
  std::erase_if(bundles, [&](const Bundle& each) {
    return each.links < 2 || plan.layout.world() <= each.ranks;
  });
  return bundles;
}

std::int64_t count_of(const Bundle& bundle, const Plan& plan) {
  return ceil_div(plan.layout.world(), bundle.ranks);
}

/// Leaf switches: units of nodes, each with one for every NIC of a node.
struct Leaves {
  std::int64_t ranks = 0;  // of a unit
  std::int64_t units = 0;
  std::int64_t rails = 0;
};

Leaves leaves_of(const Plan& plan) {
  const Bundle node = node_of(plan.cluster);
  if (node.links == 0 || plan.layout.world() <= node.ranks) return {};
  Leaves leaves = {kNodesOfASwitch * node.ranks, 0, node.links};
  for (const LinkTier& tier : plan.cluster.tiers) {
    if (tier.domain_size <= node.ranks) continue;
    leaves.ranks = std::min<std::int64_t>(leaves.ranks, tier.domain_size);
    break;
  }
  leaves.units = ceil_div(plan.layout.world(), leaves.ranks);
  return leaves;
}

/// Links of one bundle that hang on a leaf switch: a NIC of each node, or of a domain's up-links
/// the part of one switch.
std::int64_t links_on_a_leaf(const Bundle& bundle, const Leaves& leaves) {
  if (bundle.node) return 1;
  const std::int64_t switches = std::max<std::int64_t>(1, bundle.ranks / leaves.ranks);
  return ceil_div(bundle.links, switches * leaves.rails);
}

/// What is left in each bundle of each kind.
using LinksLeft = std::vector<std::vector<std::int64_t>>;

/// Takes switches away. \returns ranks of units that have none left
std::int64_t fail_switches(LinksLeft& left, const std::vector<Bundle>& bundles, const Plan& plan,
                           std::int64_t failed, std::uint64_t seed) {
  const Leaves leaves = leaves_of(plan);
  const std::int64_t all = leaves.units * leaves.rails;
  std::vector<bool> gone(static_cast<std::size_t>(all));
  std::vector<std::int64_t> there(static_cast<std::size_t>(leaves.units), leaves.rails);
  std::int64_t cut_off = 0;
  for (std::uint64_t draw = 0; failed > 0; ++draw) {
    const auto one = static_cast<std::size_t>(uniform(seed, draw) * static_cast<double>(all));
    if (gone[one]) continue;
    gone[one] = true;
    --failed;
    const std::int64_t unit = static_cast<std::int64_t>(one) / leaves.rails;
    const std::int64_t first = unit * leaves.ranks;
    if (--there[static_cast<std::size_t>(unit)] == 0) {
      cut_off += std::min(leaves.ranks, plan.layout.world() - first);
    }
    for (std::size_t kind = 0; kind < bundles.size(); ++kind) {
      const std::int64_t each = bundles[kind].ranks;
      const auto end = std::min<std::size_t>(
          left[kind].size(), static_cast<std::size_t>(ceil_div(first + leaves.ranks, each)));
      for (auto b = static_cast<std::size_t>(first / each); b < end; ++b) {
        left[kind][b] =
            std::max<std::int64_t>(1, left[kind][b] - links_on_a_leaf(bundles[kind], leaves));
      }
    }
  }
  return cut_off;
}

}  // namespace

std::int64_t leaf_switches(const Plan& plan) {
  const Leaves leaves = leaves_of(plan);
  return leaves.units * leaves.rails;
}

std::int64_t spare_links(const Plan& plan, std::int64_t switches) {
  const std::vector<Bundle> bundles = bundles_of(plan);
  const Leaves leaves = leaves_of(plan);
  std::int64_t spare = 0;
  for (const Bundle& each : bundles) {
    spare += count_of(each, plan) * (each.links - 1);
    if (switches == 0) continue;
    const std::int64_t met =
        std::min(count_of(each, plan), std::max<std::int64_t>(1, leaves.ranks / each.ranks));
    spare -= switches * met * links_on_a_leaf(each, leaves);
  }
  return std::max<std::int64_t>(0, spare);
}

NetworkLeft network_left(const Plan& plan, const NetworkFailures& failed, std::uint64_t seed) {
  const std::vector<Bundle> bundles = bundles_of(plan);
  LinksLeft left;
  std::int64_t links = 0;
  for (const Bundle& each : bundles) {
    left.emplace_back(static_cast<std::size_t>(count_of(each, plan)), each.links);
    links += count_of(each, plan) * each.links;
  }
  if (failed.switches > 0) {
    const std::int64_t cut_off =
        fail_switches(left, bundles, plan, failed.switches, mixed(seed, 1));
    if (cut_off > 0) return {{}, cut_off};
  }
  std::int64_t to_fail = failed.links;
  for (std::uint64_t draw = 0; to_fail > 0; ++draw) {
    auto drawn = static_cast<std::int64_t>(uniform(seed, draw) * static_cast<double>(links));
    std::size_t kind = 0;
    while (drawn >= count_of(bundles[kind], plan) * bundles[kind].links) {
      drawn -= count_of(bundles[kind], plan) * bundles[kind].links;
      ++kind;
    }
    std::int64_t& there = left[kind][static_cast<std::size_t>(drawn / bundles[kind].links)];
    if (there == 1) continue;
    --there;
    --to_fail;
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
  return {std::move(delays), 0};
}

}  // namespace shardwise::sim
