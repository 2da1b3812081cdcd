#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/machine/collective_curve.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// The most GPUs a cluster may have; a tier of this size has no end of its own.
inline constexpr std::int64_t kMostGpus = std::int64_t{1} << 22;
/// The most link tiers a cluster may have.
inline constexpr std::size_t kMaxTiers = 4;

/// Reductions performed inside the switches of a tier.
enum class InNetwork : std::uint8_t { none, nvls, sharp };

/// How the GPUs of one domain are joined.
enum class Wiring : std::uint8_t {
  switched,  // a GPU can give its whole bandwidth to any one other
  mesh,      // every pair has a link of its own: k others get k / (domain_size - 1) of it
};

/// One level of the interconnect, innermost first. Ranks 0 … domain_size-1 are in one domain, the
/// next domain_size ranks in the next, and so on.
struct LinkTier {
  std::string name;              // "nvlink", "infiniband", "pcie", "spine"
  std::int64_t domain_size = 0;  // GPUs that reach one another through this tier
  Wiring wiring = Wiring::switched;
  BytesPerSecond bandwidth;       // of one GPU's link, one way, as the data sheet says
  Seconds latency;                // one hop, small message
  int gpus_per_link = 1;          // GPUs that share one such link (NIC, PCIe root)
  double oversubscription = 1.0;  // of the switches above, >= 1: divides bandwidth
  InNetwork in_network = InNetwork::none;
  std::string source;
  CollectiveCurve collectives;
  friend bool operator==(const LinkTier&, const LinkTier&) = default;
};

/// Machines to buy or rent and how they are wired. GPUs are all of one kind.
struct ClusterSpec {
  std::string name;
  std::string label;
  GpuSpec gpu;
  std::int64_t gpus = 0;  // in total; a plan may use fewer
  std::int64_t gpus_per_node = 8;
  std::vector<LinkTier> tiers;  // innermost first; the last one spans the cluster
  Bytes host_memory_per_node;
  BytesPerSecond host_link;     // GPU <-> host memory, per GPU, one way
  BytesPerSecond storage_read;  // per node, shared file system or local disk
  BytesPerSecond storage_write;
  double node_watts = 0;                     // besides the GPUs
  std::optional<double> price_per_gpu_hour;  // overrides the GPU's list price
  std::string price_source;
  double mtbf_hours_per_gpu = 0;  // mean time between failures that stop a job; 0 = unknown
  std::string mtbf_source;
  std::vector<std::string> sources;

  std::int64_t nodes() const { return ceil_div(gpus, gpus_per_node); }
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

}  // namespace shardwise
