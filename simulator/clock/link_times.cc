#include "simulator/clock/link_times.h"

#include <cstdint>

#include "planner/spec/text/units.h"
#include "simulator/workload/sent_bytes.h"

namespace shardwise::sim {
namespace {

/// By stage, the ranks on a shared link. What a link carries is summed stage by stage, so that it
/// is the same to the last digit however many of these ranks are simulated.
std::vector<std::int64_t> ranks_on(const Workload& work, std::uint32_t link) {
  std::vector<std::int64_t> ranks(work.programs.size());
  const IndexRange members = work.links[link].members;
  for (std::uint32_t m = members.begin; m != members.end; ++m) {
    const Actor& member = work.actors[work.link_members[m]];
    for (std::uint32_t u = member.links.begin; u != member.links.end; ++u) {
      if (work.link_uses[u].link == link) ranks[member.program] += work.link_uses[u].ranks;
    }
  }
  return ranks;
}

/// \param sent  by one rank of each stage
std::vector<LinkTime> links_of_stage(const Plan& plan, const Simulation& simulation,
                                     const std::vector<StageSent>& sent, std::size_t stage) {
  const double length = simulation.timeline.length();
  const auto share = [length](double busy) { return length > 0 ? busy / length : 0; };
  const Workload& work = simulation.work;
  const Actor& actor = simulation.actor_of(stage);
  const std::vector<LinkKind> kinds = shared_links(plan.cluster);
  std::vector<LinkTime> links;
  for (std::size_t tier = 0; tier < plan.cluster.tiers.size() && tier < kMaxTiers; ++tier) {
    const Bytes own = sent[stage].over(tier);
    if (own == Bytes(0)) continue;
    const LinkTier& spec = plan.cluster.tiers[tier];
    if (spec.gpus_per_link == 1) {
      const double busy = sent[stage].traffic.seconds[tier];
      links.push_back({spec.name, 1, own, own, Seconds(busy), share(busy)});
    }
    for (std::uint32_t u = actor.links.begin; u != actor.links.end; ++u) {
      const SharedLink& link = work.links[work.link_uses[u].link];
      if (link.tier != tier) continue;
      double bytes = 0;
      double seconds = 0;
      std::int64_t ranks = 0;
      const std::vector<std::int64_t> there = ranks_on(work, work.link_uses[u].link);
      for (std::size_t s = 0; s < there.size(); ++s) {
        bytes += static_cast<double>(there[s]) * sent[s].traffic.bytes[tier];
        seconds += static_cast<double>(there[s]) * sent[s].traffic.seconds[tier];
        ranks += there[s];
      }
      const LinkKind& kind = kinds[u - actor.links.begin];
      const double busy = seconds / link.capacity;
      links.push_back({kind.up_link ? spec.name + " up-links" : spec.name, ranks, own,
                       StageSent::whole_bytes(bytes), Seconds(busy), share(busy)});
    }
  }
  return links;
}

}  // namespace

std::vector<std::vector<LinkTime>> link_times(const Plan& plan, const Simulation& simulation) {
  const std::vector<StageSent> sent = sent_by_stage(plan, simulation.program);
  std::vector<std::vector<LinkTime>> links;
  for (std::size_t stage = 0; stage < sent.size(); ++stage) {
    links.push_back(links_of_stage(plan, simulation, sent, stage));
  }
  return links;
}

}  // namespace shardwise::sim
