#include "simulator/link_times.h"

#include <array>
#include <cstdint>

#include "planner/lowering/layer_items.h"
#include "planner/spec/units.h"
#include "simulator/prices.h"

namespace shardwise::sim {
namespace {

/// What ranks send in a step.
class Sent {
 public:
  explicit Sent(const Plan& plan) : plan_(plan) {}

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
    const TierTraffic one = traffic_of(work, plan_.cluster, plan_.layout);
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      all_.bytes[tier] += one.bytes[tier] * work.times * uses;
      all_.seconds[tier] += one.seconds[tier] * work.times * uses;
    }
  }
  /// The collectives inside a pass of a whole layer.
  void add(const LayerWork& layer, double uses) {
    if (items_.empty()) items_ = layer_items(plan_);
    for (const LayerItem& item : items_[static_cast<std::size_t>(layer.kind)]) {
      if (item.moves && runs(item, layer.part)) add(item.collective, uses);
    }
  }

  const Plan& plan_;
  TierTraffic all_;
  std::vector<std::vector<LayerItem>> items_;  // by kind, once a layer asks for them
};

Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

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
