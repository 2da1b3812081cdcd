#include "planner/search/advice/lever.h"

#include <cmath>

#include "planner/estimate/gpu_hour_price.h"
#include "planner/spec/text/format.h"

namespace shardwise {

std::vector<Lever> levers_of(const ClusterSpec& cluster) {
  std::vector<Lever> levers;
  std::int64_t inside = 1;  // GPUs that the tiers before have joined
  for (std::size_t tier = 0; tier < cluster.tiers.size() && inside < cluster.gpus; ++tier) {
    levers.push_back({LeverKind::bandwidth, tier});
    inside = cluster.tiers[tier].domain_size;
  }
  levers.push_back({LeverKind::memory, 0});
  if (gpu_hour_price(cluster)) levers.push_back({LeverKind::price, 0});
  return levers;
}

ClusterSpec pulled(ClusterSpec cluster, const Lever& lever, double factor) {
  switch (lever.kind) {
    case LeverKind::bandwidth: {
      BytesPerSecond& bandwidth = cluster.tiers[lever.tier].bandwidth;
      bandwidth = factor * bandwidth;
      break;
    }
    case LeverKind::memory: {
      const auto bytes = static_cast<double>(cluster.gpu.hbm_bytes.value());
      cluster.gpu.hbm_bytes = Bytes(std::llround(factor * bytes));
      break;
    }
    case LeverKind::price:
      cluster.price_per_gpu_hour = factor * gpu_hour_price(cluster).value_or(0);
      break;
  }
  return cluster;
}

std::string lever_text(const ClusterSpec& cluster, const Lever& lever) {
  switch (lever.kind) {
    case LeverKind::bandwidth:
      return cluster.tiers[lever.tier].name + " bandwidth";
    case LeverKind::memory:
      return "memory of a GPU";
    case LeverKind::price:
      break;
  }
  return "price of a GPU-hour";
}

std::string lever_value(const ClusterSpec& cluster, const Lever& lever) {
  switch (lever.kind) {
    case LeverKind::bandwidth:
      return format_bandwidth(cluster.tiers[lever.tier].bandwidth);
    case LeverKind::memory:
      return format_bytes(cluster.gpu.hbm_bytes);
    case LeverKind::price:
      break;
  }
  return format_dollars(gpu_hour_price(cluster).value_or(0));
}

}  // namespace shardwise
