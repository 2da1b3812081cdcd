#pragma once

#include <array>
#include <cstddef>

#include "planner/cost/collectives/collective.h"

namespace shardwise {

/// One tier that a group crosses, joining domains of the tier inside it (single ranks, innermost).
struct Crossing {
  const LinkTier* tier = nullptr;
  double hops = 0;       // of a ring through all ranks, over this tier
  double domains = 1;    // inner domains of the group, in all
  double joined = 1;     // inner domains that meet in one domain of this tier
  double ranks = 1;      // of the group in one inner domain, the fewest
  double peers = 0;      // of one rank, reached over this tier and no tier further in
  double beyond = 0;     // share of the ranks that are outside the inner domain
  double rank_rate = 0;  // bytes a second one rank can send (and at once receive), links shared
  double rate = 0;       // same for all ranks of the inner domain
};

/// The tiers that a group crosses, innermost first.
struct GroupLinks {
  std::array<Crossing, kMaxTiers> at;
  std::size_t count = 0;
  double ranks = 1;
  bool one_each = false;  // no two ranks of the group share a domain of the innermost tier
  const Crossing* begin() const { return at.data(); }
  const Crossing* end() const { return at.data() + count; }
  bool one_domain() const { return count == 1; }
};

GroupLinks links_of(const ClusterSpec& cluster, const GroupShape& group);

/// Seconds that no implementation can beat.
double bound_seconds(const GroupLinks& links, CollectiveKind kind, double bytes);

}  // namespace shardwise
