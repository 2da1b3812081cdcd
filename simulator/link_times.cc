#include "simulator/link_times.h"

#include <array>
#include <cstdint>

#include "planner/spec/units.h"
#include "simulator/layer_transfers.h"
#include "simulator/prices.h"

namespace shardwise::sim {
namespace {

/// What ranks send in a step.
class Sent {
 public:
  explicit Sent(const Plan& plan) : plan_(plan), inside_(plan) {}

  /// One rank of that stage.
  TierTraffic by(const StageProgram& stage) {
    std::vector<std::int64_t> uses(stage.costs.size());
    for (const ProgramOp& op : stage.operations) {
      if (op.stream != Stream::receive) ++uses[static_cast<std::size_t>(op.cost)];
    }
    all_ = {};
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      if (uses[c] == 0) continue;
      const auto times = static_cast<double>(uses[c]);
      for (const CollectiveWork& work : stage.costs[c].collectives) add(work, times);
      for (const LayerWork& work : stage.costs[c].layers) add(work, times);
    }
    return all_;
  }

 private:
  void add(const CollectiveWork& work, double uses) {
    add(traffic_of(work, plan_.cluster, plan_.layout), uses);
  }
  void add(const TierTraffic& one, double uses) { all_ += uses * one; }
  /// The collectives inside a pass of a whole layer.
  void add(const LayerWork& layer, double uses) {
    for (const InsideTransfer& axis : inside_.of(layer).axes) add(axis.traffic, uses);
  }

  const Plan& plan_;
  LayerTransfers inside_;
  TierTraffic all_;
};

Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

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

/// \param traffic  of one rank of each stage
std::vector<LinkTime> links_of_stage(const Plan& plan, const Simulation& simulation,
                                     const std::vector<TierTraffic>& traffic, std::size_t stage) {
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
      const std::vector<std::int64_t> there = ranks_on(work, work.link_uses[u].link);
      for (std::size_t s = 0; s < there.size(); ++s) {
        bytes += static_cast<double>(there[s]) * traffic[s].bytes[tier];
        seconds += static_cast<double>(there[s]) * traffic[s].seconds[tier];
        ranks += there[s];
      }
      const LinkKind& kind = kinds[u - actor.links.begin];
      const double busy = seconds / link.capacity;
      links.push_back({kind.up_link ? spec.name + " up-links" : spec.name, ranks, sent,
                       whole_bytes(bytes), Seconds(busy), share(busy)});
    }
  }
  return links;
}

}  // namespace

std::vector<std::vector<LinkTime>> link_times(const Plan& plan, const Simulation& simulation) {
  Sent sent(plan);
  std::vector<TierTraffic> traffic;
  for (const StageProgram& each : simulation.program.stages) traffic.push_back(sent.by(each));
  std::vector<std::vector<LinkTime>> links;
  for (std::size_t stage = 0; stage < traffic.size(); ++stage) {
    links.push_back(links_of_stage(plan, simulation, traffic, stage));
  }
  return links;
}

}  // namespace shardwise::sim
