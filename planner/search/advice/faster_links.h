#pragma once

#include <cstddef>

#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// Number of tiers that join GPUs of the cluster, counted from the innermost.
std::size_t reached_tiers(const ClusterSpec& cluster);

/// The cluster with `factor` times the bandwidth in one tier. Latencies stay, and so do the shares
/// of the data sheet that collectives reach. \pre tier < tiers.size(), factor > 0
ClusterSpec with_bandwidth(ClusterSpec cluster, std::size_t tier, double factor);

}  // namespace shardwise
