#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"

namespace shardwise::sim {

/// One kind of physical link that neighbouring ranks share: rank r uses link r / ranks. What it
/// carries is counted in the full rate of one link of the tier, as CostPrice::link_share is.
struct LinkKind {
  std::size_t tier = 0;    // of ClusterSpec::tiers
  std::int64_t ranks = 1;  // that share one
  double capacity = 1;     // links of the tier that it is as fast as
  bool up_link = false;    // of a switch, to the tier further out
};

/// The links of a cluster that several ranks share: NICs with more than one GPU, and the up-links
/// of an oversubscribed tier's inner domains, which carry their GPUs' links over the
/// oversubscription. A link that one rank has for itself is not among them.
/// docs/simulator.md, "Links".
std::vector<LinkKind> shared_links(const ClusterSpec& cluster);

}  // namespace shardwise::sim
