#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// Failed parts of a cluster's network.
struct NetworkFailures {
  std::int64_t links = 0;     // NICs, and up-links of oversubscribed switches
  std::int64_t switches = 0;  // leaf switches: a NIC of each node of a unit, with their up-links
};

/// Leaf switches that the plan's nodes hang on: of each unit of nodes one for each NIC of a node. 0
/// where nothing lies outside a node.
std::int64_t leaf_switches(const Plan& plan);

/// NICs and up-links that can fail besides `switches` while all ranks still reach one another: all
/// but one of each node, and of each domain below an oversubscribed tier, that the layout uses.
std::int64_t spare_links(const Plan& plan, std::int64_t switches = 0);

/// A network after failures.
struct NetworkLeft {
  /// By rank and tier, as Noise::link_delay: the links that are left in a node or a domain carry
  /// the traffic of those that are gone, so while a byte is on a link it takes n / (n - f) times as
  /// long. Empty where ranks are cut off.
  std::vector<TierFactors> delays;
  /// Ranks whose nodes have lost their last leaf switch: the step cannot run.
  std::int64_t cut_off = 0;
};
/// With links and switches gone, drawn by `seed` over all there are. docs/noise_and_failures.md.
/// \pre failed.switches <= leaf_switches(plan), failed.links <= spare_links(plan, failed.switches)
NetworkLeft network_left(const Plan& plan, const NetworkFailures& failed, std::uint64_t seed);

}  // namespace shardwise::sim
