#pragma once

#include <optional>

#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// US dollars for an hour of one of its GPUs: the cluster's own price, or else the GPU's list
/// price. Nothing where neither is known.
inline std::optional<double> gpu_hour_price(const ClusterSpec& cluster) {
  return cluster.price_per_gpu_hour ? cluster.price_per_gpu_hour : cluster.gpu.price_per_hour;
}

}  // namespace shardwise
