#include "planner/cost/collectives/tier_traffic.h"

#include "planner/cost/collectives/collective_links.h"

namespace shardwise {
namespace {

/// Times that each byte leaves a domain.
double passes(CollectiveKind kind, const Crossing& at) {
  if (kind != CollectiveKind::all_reduce) return 1;
  return at.tier->in_network == InNetwork::none ? 2 : 1;
}

/// Bytes a second of one link of a tier. Of a mesh, the links to the ranks that the group reaches.
double link_rate(const Crossing& at) {
  if (at.tier->wiring == Wiring::mesh) return at.rank_rate * at.tier->oversubscription;
  return at.tier->bandwidth.value();
}

}  // namespace

TierTraffic& TierTraffic::operator+=(const TierTraffic& other) {
  for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
    bytes[tier] += other.bytes[tier];
    seconds[tier] += other.seconds[tier];
  }
  return *this;
}

TierTraffic operator*(double factor, TierTraffic traffic) {
  for (double& bytes : traffic.bytes) bytes *= factor;
  for (double& seconds : traffic.seconds) seconds *= factor;
  return traffic;
}

TierTraffic tier_traffic(const ClusterSpec& cluster, CollectiveKind kind, double bytes,
                         const GroupShape& group) {
  TierTraffic traffic;
  if (group.ranks <= 1) return traffic;
  const GroupLinks links = links_of(cluster, group);
  for (const Crossing& at : links) {
    const auto tier = static_cast<std::size_t>(at.tier - cluster.tiers.data());
    double sent = bytes;  // a message, over the outermost tier that it crosses
    switch (kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce:
        // What leaves a domain is spread over the links of its ranks.
        sent = passes(kind, at) * at.beyond * bytes / at.ranks;
        break;
      case CollectiveKind::all_to_all:
        sent = at.beyond * bytes;
        break;
      case CollectiveKind::broadcast:
        sent = bytes / at.ranks;
        break;
      case CollectiveKind::send_recv:
        traffic = {};
        break;
    }
    traffic.bytes[tier] = sent;
    traffic.seconds[tier] = sent / link_rate(at);
  }
  return traffic;
}

}  // namespace shardwise
