#include "simulator/workload/links.h"

#include <algorithm>

namespace shardwise::sim {

std::vector<LinkKind> shared_links(const ClusterSpec& cluster) {
  std::vector<LinkKind> kinds;
  for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
    const LinkTier& tier = cluster.tiers[i];
    if (tier.gpus_per_link > 1) kinds.push_back({i, tier.gpus_per_link, 1, false});
    const std::int64_t inner = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
    if (tier.oversubscription > 1 && inner > 1) {
      const double links = static_cast<double>(inner) / std::max(1, tier.gpus_per_link);
      kinds.push_back({i, inner, links / tier.oversubscription, true});
    }
  }
  return kinds;
}

}  // namespace shardwise::sim
