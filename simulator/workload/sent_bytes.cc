#include "simulator/workload/sent_bytes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "simulator/workload/layer_transfers.h"
#include "simulator/workload/prices.h"

namespace shardwise::sim {
namespace {

/// The ranks that meet on the stream of a transfer inside a layer's pass.
GroupKind group_inside(Stream stream) {
  if (stream == Stream::tensor_parallel) return GroupKind::tp;
  return stream == Stream::context_parallel ? GroupKind::cp : GroupKind::ep;
}

class Sent {
 public:
  explicit Sent(const Plan& plan) : plan_(plan), inside_(plan) {}

  StageSent by(const StageProgram& stage) {
    // How often each cost is paid, on each stream.
    std::vector<std::array<std::int64_t, kStreams>> uses(stage.costs.size());
    for (const ProgramOp& op : stage.operations) {
      if (op.stream == Stream::receive) continue;
      ++uses[static_cast<std::size_t>(op.cost)][static_cast<std::size_t>(op.stream)];
    }
    all_ = {};
    parts_.clear();
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      double times = 0;
      for (const std::int64_t each : uses[c]) times += static_cast<double>(each);
      if (times == 0) continue;
      for (const CollectiveWork& work : stage.costs[c].collectives) {
        const TierTraffic one = traffic_of(work, plan_.cluster, plan_.layout);
        all_ += times * one;
        for (std::size_t s = 0; s < kStreams; ++s) {
          if (uses[c][s] == 0) continue;
          parts_[{static_cast<Stream>(s), work.group}] += static_cast<double>(uses[c][s]) * one;
        }
      }
      for (const LayerWork& work : stage.costs[c].layers) {
        for (const InsideTransfer& axis : inside_.of(work).axes) {
          all_ += times * axis.traffic;
          parts_[{axis.axis, group_inside(axis.axis)}] += times * axis.traffic;
        }
      }
    }
    return {all_, whole_parts()};
  }

 private:
  /// The parts in whole bytes that sum to those of all of them, tier by tier.
  std::vector<SentPart> whole_parts() const {
    std::vector<SentPart> whole;
    for (const auto& [key, traffic] : parts_) whole.push_back({key.first, key.second, {}});
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      double reached = 0;
      Bytes counted;
      std::size_t at = 0;
      for (const auto& [key, traffic] : parts_) {
        reached += traffic.bytes[tier];
        // Sums in another order differ in their last bits.
        const Bytes total = StageSent::whole_bytes(all_.bytes[tier]);
        const bool last = at + 1 == parts_.size();
        const Bytes upto = last ? total : std::min(total, StageSent::whole_bytes(reached));
        whole[at++].bytes[tier] = upto - counted;
        counted = upto;
      }
    }
    std::erase_if(
        whole, [](const SentPart& part) { return part.bytes == std::array<Bytes, kMaxTiers>{}; });
    return whole;
  }

  const Plan& plan_;
  LayerTransfers inside_;
  TierTraffic all_;
  std::map<std::pair<Stream, GroupKind>, TierTraffic> parts_;
};

}  // namespace

std::vector<StageSent> sent_by_stage(const Plan& plan, const StepProgram& program) {
  Sent sent(plan);
  std::vector<StageSent> stages;
  stages.reserve(program.stages.size());
  for (const StageProgram& each : program.stages) stages.push_back(sent.by(each));
  return stages;
}

}  // namespace shardwise::sim
