#include "planner/cost/collectives/collective_links.h"

#include <algorithm>

namespace shardwise {
namespace {

/// What one rank may send over tier `i` while all GPUs that share its links are as busy.
double rank_rate(const ClusterSpec& cluster, const GroupShape& group, std::size_t i) {
  const LinkTier& tier = cluster.tiers[i];
  double rate = tier.bandwidth.value() / tier.oversubscription;
  const std::int64_t inner = i == 0 ? 1 : group.span[i - 1];
  if (tier.wiring == Wiring::mesh && tier.domain_size > 1) {
    const std::int64_t domain = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
    const double others = static_cast<double>(std::max<std::int64_t>(1, group.span[i] - inner));
    rate *= std::min(1.0, others / static_cast<double>(tier.domain_size - domain));
  }
  if (tier.gpus_per_link > 1) {
    // GPUs that leave by the same links: those of the inner domain, or the neighbours of one link.
    const std::int64_t domain = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
    const std::int64_t reach = std::max(domain, std::int64_t{tier.gpus_per_link});
    const std::int64_t here =
        std::max(inner, std::min<std::int64_t>(group.span[i], reach / domain));
    const std::int64_t busy = std::min(reach, here * std::max(1, group.concurrent[i]));
    rate *= std::min(1.0, static_cast<double>(reach) /
                              static_cast<double>(busy * std::int64_t{tier.gpus_per_link}));
  }
  return rate;
}

/// Domains of tier `i` that the group touches; shapes made by hand may leave it out.
double domains(const GroupShape& group, std::size_t i) {
  if (group.domains[i] > 0) return group.domains[i];
  return static_cast<double>(ceil_div(group.ranks, std::max(1, group.span[i])));
}

}  // namespace

GroupLinks links_of(const ClusterSpec& cluster, const GroupShape& group) {
  GroupLinks links;
  links.ranks = group.ranks;
  links.one_each = group.tiers > 1 && group.span[0] == 1;
  double inner_domains = group.ranks;  // single ranks
  for (std::size_t i = 0; i < static_cast<std::size_t>(group.tiers); ++i) {
    const double here = domains(group, i);
    if (here >= inner_domains) continue;
    Crossing& at = links.at[links.count++];
    const double inner = i == 0 ? 1 : group.span[i - 1];
    const double least = i == 0 ? 1 : group.least[i - 1] > 0 ? group.least[i - 1] : inner;
    at.tier = &cluster.tiers[i];
    at.hops = inner_domains - here;
    at.domains = inner_domains;
    at.joined = inner_domains / here;
    at.ranks = least;
    at.peers = group.span[i] - least;
    at.beyond = (links.ranks - least) / links.ranks;
    at.rank_rate = rank_rate(cluster, group, i);
    at.rate = at.rank_rate * least;
    inner_domains = here;
  }
  return links;
}

double bound_seconds(const GroupLinks& links, CollectiveKind kind, double bytes) {
  double bound = 0;
  double further = 0;  // what one rank can send over the tiers further out
  for (std::size_t i = links.count; i-- > 0;) {
    const Crossing& at = links.at[i];
    const double rank_rate = at.rank_rate + further;
    const double rate = at.ranks * rank_rate;
    switch (kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
        // What a domain lacks comes in; of what is reduced elsewhere, its part goes out.
        bound = std::max(bound, at.beyond * bytes / rate);
        break;
      case CollectiveKind::all_reduce:
        // Each byte leaves each domain once, as a part of the sum or as the sum.
        bound = std::max(bound, bytes / rate);
        // Without a switch that adds or copies, each byte travels between domains domains - 1 times
        // to be added up, and as often to be known by all.
        if (at.tier->in_network == InNetwork::none) {
          bound = std::max(bound, 2 * (at.domains - 1) * bytes / (links.ranks * rank_rate));
        }
        break;
      case CollectiveKind::all_to_all:
        bound = std::max(bound, at.beyond * bytes / rank_rate);
        break;
      case CollectiveKind::broadcast:
        bound = std::max(bound, bytes / rate);
        break;
      case CollectiveKind::send_recv:
        return bytes / at.rank_rate;  // between domains of the outermost tier
    }
    further += at.rank_rate;
  }
  return bound;
}

}  // namespace shardwise
