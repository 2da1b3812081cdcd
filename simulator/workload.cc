#include "simulator/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "planner/spec/check.h"
#include "simulator/random.h"

namespace shardwise::sim {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// The collective that an operation is, or nullptr.
const CollectiveWork* collective_of(const StageProgram& stage, const ProgramOp& op) {
  const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
  return cost.collectives.empty() ? nullptr : &cost.collectives.front();
}

/// Groups that have ranks on several stages.
bool crosses_stages(GroupKind kind) { return kind == GroupKind::pp || kind == GroupKind::world; }

/// Stages meet in the order of each such sequence: of all ranks of a pipeline, of its two ends, of
/// the world.
constexpr std::size_t kCrossingKinds = 3;
std::size_t crossing_kind(const CollectiveWork& work) {
  if (work.group == GroupKind::world) return 2;
  return work.ends ? 1 : 0;
}

/// Sorts a stage's operations by stream, keeping program order within each.
WorkProgram sorted(const StageProgram& stage, std::span<const CostPrice> prices,
                   const LaunchRules& launch) {
  WorkProgram work;
  work.program = &stage;
  work.prices = prices;
  const std::size_t count = stage.operations.size();
  for (const ProgramOp& op : stage.operations) {
    ++work.stream_begin[static_cast<std::size_t>(op.stream) + 1];
  }
  for (std::size_t s = 0; s < kStreams; ++s) work.stream_begin[s + 1] += work.stream_begin[s];
  std::array<std::uint32_t, kStreams + 1> at = work.stream_begin;
  work.operations.resize(count);
  if (launch.issue > 0) {
    work.issued.resize(count);
    work.issued_last.resize(count);
  }
  double host = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ProgramOp& op = stage.operations[i];
    const CostPrice& price = prices[static_cast<std::size_t>(op.cost)];
    for (const std::uint32_t wait : stage.of(op.waits)) {
      SHARDWISE_CHECK(wait < i, fmt::format("operation {} waits for {}", i, wait));
    }
    work.operations[at[static_cast<std::size_t>(op.stream)]++] = {price.seconds, i, op.waits, -1};
    if (launch.issue > 0) {
      work.issued[i] = host + launch.issue * std::min(1.0, price.launches);
      host += launch.issue * price.launches;
      work.issued_last[i] = host;
    }
  }
  return work;
}

/// Gives operations their slots while the programs are built.
class Slots {
 public:
  /// \param group_of  entry of Actor::groups for a kind of group, and whether it is a meeting
  Slots(Workload& work, const StepProgram& program) : work_(work) {
    std::int64_t last = -1;
    for (const StageProgram& stage : program.stages) {
      for (const ProgramOp& op : stage.operations) last = std::max<std::int64_t>(last, op.message);
    }
    messages_.assign(static_cast<std::size_t>(last + 1), -1);
  }

  std::int32_t message(std::int32_t number, std::int32_t group) {
    std::int32_t& slot = messages_[static_cast<std::size_t>(number)];
    if (slot < 0) slot = add(group);
    work_.slots[static_cast<std::size_t>(slot)].participants += 1;
    return slot;
  }
  /// The `nth` collective of its stage that crosses stages as `work` does.
  std::int32_t across(const CollectiveWork& work, std::size_t nth, std::int32_t group,
                      std::int32_t ranks) {
    std::vector<std::int32_t>& found = crossing_[crossing_kind(work)];
    if (nth == found.size()) found.push_back(add(group));
    work_.slots[static_cast<std::size_t>(found[nth])].participants += ranks;
    return found[nth];
  }
  std::int32_t within(std::int32_t group, std::int32_t ranks) {
    const std::int32_t slot = add(group);
    work_.slots.back().participants = ranks;
    return slot;
  }

 private:
  std::int32_t add(std::int32_t group) {
    work_.slots.push_back({0, 0, group});
    return static_cast<std::int32_t>(work_.slots.size() - 1);
  }

  Workload& work_;
  std::vector<std::int32_t> messages_;
  std::array<std::vector<std::int32_t>, kCrossingKinds> crossing_;
};

/// How many groups there are for each entry of Actor::groups, so that meetings can be numbered.
void number_meetings(Workload& work, std::span<const std::uint32_t> group_counts) {
  for (Slot& slot : work.slots) {
    slot.first_meeting = static_cast<std::uint32_t>(work.meetings);
    work.meetings += group_counts[static_cast<std::size_t>(slot.group)];
  }
}

/// The groups of one kind: of each rank its group, numbered from 0.
struct Groups {
  GroupKind kind = GroupKind::world;
  std::vector<std::uint32_t> of_rank;
  std::uint32_t count = 0;
  std::int32_t ranks = 0;  // of one group
};
Groups groups_of(const Layout& layout, GroupKind kind) {
  Groups groups;
  groups.kind = kind;
  const std::int64_t world = layout.world();
  groups.of_rank.assign(static_cast<std::size_t>(world), kNone);
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (groups.of_rank[static_cast<std::size_t>(rank)] != kNone) continue;
    const std::vector<std::int64_t> members = group_ranks(layout, kind, rank);
    for (const std::int64_t each : members) {
      groups.of_rank[static_cast<std::size_t>(each)] = groups.count;
    }
    groups.ranks = static_cast<std::int32_t>(members.size());
    ++groups.count;
  }
  return groups;
}

/// Numbers the meetings of a stage's operations: messages, and what `slot_across` says of a
/// collective between stages (its how-maniest of its kind given) and `slot_within` of any other.
template <class SlotAcross, class SlotWithin>
void number_slots(WorkProgram& made, const StageProgram& stage, Slots& slots,
                  const SlotAcross& slot_across, const SlotWithin& slot_within) {
  std::array<std::size_t, kCrossingKinds> crossing{};
  std::vector<std::int32_t>& slot_of = made.slot_of;
  slot_of.assign(stage.operations.size(), -1);
  for (std::size_t i = 0; i < stage.operations.size(); ++i) {
    const ProgramOp& op = stage.operations[i];
    const CollectiveWork* collective = collective_of(stage, op);
    if (op.message >= 0) {
      slot_of[i] = slots.message(op.message, 0);
    } else if (collective != nullptr && crosses_stages(collective->group)) {
      slot_of[i] = slot_across(*collective, crossing[crossing_kind(*collective)]++);
    } else if (collective != nullptr) {
      slot_of[i] = slot_within(*collective);
    }
  }
  for (WorkOp& op : made.operations) op.slot = slot_of[op.index];
}

}  // namespace

double Workload::noisy(std::uint32_t actor, const WorkOp& op) const {
  const Actor& rank = actors[actor];
  const ProgramOp& program_op = program_of(rank).operations[op.index];
  double seconds = op.duration;
  const bool computes = program_op.stream == Stream::compute &&
                        collective_of(program_of(rank), program_op) == nullptr;
  if (computes && !noise.compute_factor.empty()) seconds *= noise.compute_factor[actor];
  if (noise.jitter > 0) seconds *= jitter_factor(noise.seed, rank.base + op.index, noise.jitter);
  return seconds;
}

Workload representatives(const StepProgram& program, const Prices& prices,
                         const LaunchRules& launch) {
  Workload work;
  work.launch = launch;
  Slots slots(work, program);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    WorkProgram& made = work.programs.emplace_back(sorted(stage, prices[s], launch));
    number_slots(
        made, stage, slots,
        [&](const CollectiveWork& collective, std::size_t nth) {
          return slots.across(collective, nth, 0, 1);
        },
        [](const CollectiveWork&) { return -1; });
    work.actors.push_back({static_cast<std::uint32_t>(s), work.operations, 0, 0});
    work.operations += stage.operations.size();
  }
  work.groups = {0};
  number_meetings(work, std::array<std::uint32_t, 1>{1});
  return work;
}

Workload all_ranks(const StepProgram& program, const Prices& prices, const Layout& layout,
                   const LaunchRules& launch) {
  SHARDWISE_CHECK(program.stages.size() == static_cast<std::size_t>(layout.pp),
                  fmt::format("{} stages, pp {}", program.stages.size(), layout.pp));
  Workload work;
  work.launch = launch;
  std::vector<Groups> groups = {groups_of(layout, GroupKind::pp)};
  const auto index_of = [&](GroupKind kind) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].kind == kind) return g;
    }
    groups.push_back(groups_of(layout, kind));
    return groups.size() - 1;
  };
  Slots slots(work, program);
  const auto ranks_per_stage = static_cast<std::int32_t>(layout.world() / layout.pp);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    WorkProgram& made = work.programs.emplace_back(sorted(stage, prices[s], launch));
    number_slots(
        made, stage, slots,
        [&](const CollectiveWork& collective, std::size_t nth) {
          const auto group = static_cast<std::int32_t>(index_of(collective.group));
          const std::int32_t ranks = collective.group == GroupKind::pp ? 1 : ranks_per_stage;
          return slots.across(collective, nth, group, ranks);
        },
        [&](const CollectiveWork& collective) {
          const std::size_t group = index_of(collective.group);
          if (groups[group].ranks == 1) return -1;
          return slots.within(static_cast<std::int32_t>(group), groups[group].ranks);
        });
  }
  std::vector<std::uint32_t> counts;
  for (const Groups& each : groups) counts.push_back(each.count);
  number_meetings(work, counts);

  // The stage of a rank is its place among the ranks of its pipeline.
  std::vector<std::uint32_t> stage_of(static_cast<std::size_t>(layout.world()), kNone);
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    if (stage_of[static_cast<std::size_t>(rank)] != kNone) continue;
    std::uint32_t stage = 0;
    for (const std::int64_t each : group_ranks(layout, GroupKind::pp, rank)) {
      stage_of[static_cast<std::size_t>(each)] = stage++;
    }
  }
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto first = static_cast<std::uint32_t>(work.groups.size());
    work.actors.push_back({stage_of[r], work.operations, first, rank});
    for (const Groups& each : groups) work.groups.push_back(each.of_rank[r]);
    work.operations += program.stages[stage_of[r]].operations.size();
  }
  return work;
}

}  // namespace shardwise::sim
