#include "planner/search/advice/faster_links.h"

#include <cstdint>

namespace shardwise {

std::size_t reached_tiers(const ClusterSpec& cluster) {
  std::size_t reached = 0;
  std::int64_t joined = 1;  // GPUs that the tiers before have joined
  while (reached < cluster.tiers.size() && joined < cluster.gpus) {
    joined = cluster.tiers[reached++].domain_size;
  }
  return reached;
}

ClusterSpec with_bandwidth(ClusterSpec cluster, std::size_t tier, double factor) {
  BytesPerSecond& bandwidth = cluster.tiers[tier].bandwidth;
  bandwidth = factor * bandwidth;
  return cluster;
}

}  // namespace shardwise
