#pragma once

#include <array>

#include "planner/cost/collectives/collective.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// Bytes that one rank sends over each tier, and the seconds that one link of the tier takes for
/// them at its full rate.
struct TierTraffic {
  std::array<double, kMaxTiers> bytes{};
  std::array<double, kMaxTiers> seconds{};
  TierTraffic& operator+=(const TierTraffic& other);
  friend TierTraffic operator*(double factor, TierTraffic traffic);
};

/// Traffic of one collective. docs/simulator.md, "Links", has what each kind sends.
/// \param bytes  as collective_time counts them
TierTraffic tier_traffic(const ClusterSpec& cluster, CollectiveKind kind, double bytes,
                         const GroupShape& group);

}  // namespace shardwise
