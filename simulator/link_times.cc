#include "simulator/link_times.h"

#include <array>
#include <cstdint>

#include "planner/spec/units.h"
#include "simulator/prices.h"

namespace shardwise::sim {
namespace {

/// What one rank of a stage sends in a step.
TierTraffic sent_by(const Plan& plan, const StageProgram& stage) {
  std::vector<std::int64_t> uses(stage.costs.size());
  for (const ProgramOp& op : stage.operations) {
    if (op.stream != Stream::receive) ++uses[static_cast<std::size_t>(op.cost)];
  }
  TierTraffic all;
  for (std::size_t c = 0; c < stage.costs.size(); ++c) {
    if (stage.costs[c].collectives.empty() || uses[c] == 0) continue;
    const CollectiveWork& work = stage.costs[c].collectives.front();
    const TierTraffic one = traffic_of(work, plan.cluster, plan.layout);
    const double times = work.times * static_cast<double>(uses[c]);
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      all.bytes[tier] += one.bytes[tier] * times;
      all.seconds[tier] += one.seconds[tier] * times;
    }
  }
  return all;
}

Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

}  // namespace

std::vector<LinkTime> link_times(const Plan& plan, const Simulation& simulation,
                                 std::size_t stage) {
  std::vector<TierTraffic> traffic;
  for (const StageProgram& each : simulation.program.stages) {
    traffic.push_back(sent_by(plan, each));
  }
  const double length = simulation.timeline.length();
  const auto share = [length](double busy) { return length > 0 ? busy / length : 0; };
  const Workload& work = simulation.work;
  const Actor& actor = simulation.actor_of(stage);
  const std::vector<LinkKind> kinds = shared_links(plan.cluster);
  std::vector<LinkTime> links;
  for (std::size_t tier = 0; tier < plan.cluster.tiers.size() && tier < kMaxTiers; ++tier) {
    const Bytes sent = whole_bytes(traffic[stage].bytes[tier]);
    if (sent == Bytes(0)) continue;
    const LinkTier& spec = plan.cluster.tiers[tier];
    if (spec.gpus_per_link == 1) {
      const double busy = traffic[stage].seconds[tier];
      links.push_back({spec.name, 1, sent, sent, Seconds(busy), share(busy)});
    }
    for (std::uint32_t u = actor.links.begin; u != actor.links.end; ++u) {
      const SharedLink& link = work.links[work.link_uses[u].link];
      if (link.tier != tier) continue;
      double bytes = 0;
      double seconds = 0;
      std::int64_t ranks = 0;
      for (std::uint32_t m = link.members.begin; m != link.members.end; ++m) {
        const Actor& member = work.actors[work.link_members[m]];
        for (std::uint32_t v = member.links.begin; v != member.links.end; ++v) {
          if (work.link_uses[v].link != work.link_uses[u].link) continue;
          const auto there = static_cast<double>(work.link_uses[v].ranks);
          bytes += there * traffic[member.program].bytes[tier];
          seconds += there * traffic[member.program].seconds[tier];
          ranks += work.link_uses[v].ranks;
        }
      }
      const LinkKind& kind = kinds[u - actor.links.begin];
      const double busy = seconds / link.capacity;
      links.push_back({kind.up_link ? spec.name + " up-links" : spec.name, ranks, sent,
                       whole_bytes(bytes), Seconds(busy), share(busy)});
    }
  }
  return links;
}

}  // namespace shardwise::sim
