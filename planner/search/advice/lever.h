#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

enum class LeverKind : std::uint8_t { bandwidth, memory, price };

/// A quantity of a cluster of which it may have more or less.
struct Lever {
  LeverKind kind = LeverKind::bandwidth;
  std::size_t tier = 0;  // of ClusterSpec::tiers, of kind bandwidth
  friend bool operator==(const Lever&, const Lever&) = default;
};

/// The levers of a cluster: the bandwidth of each tier that joins its GPUs, memory, and the price
/// where it is known.
std::vector<Lever> levers_of(const ClusterSpec& cluster);

/// The cluster with `factor` times as much of it. All else stays, latencies and shares of the data
/// sheet that collectives reach among it. \pre factor > 0, of the cluster's levers
ClusterSpec pulled(ClusterSpec cluster, const Lever& lever, double factor);

/// "infiniband bandwidth", "memory of a GPU", "price of a GPU-hour".
std::string lever_text(const ClusterSpec& cluster, const Lever& lever);
/// What the cluster has of it: "450 GB/s", "80.0 GiB", "$2.99".
std::string lever_value(const ClusterSpec& cluster, const Lever& lever);

}  // namespace shardwise
