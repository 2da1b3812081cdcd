#include "simulator/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/recorded/rendezvous.h"
#include "planner/spec/text/check.h"
#include "simulator/workload/random.h"
#include "simulator/workload/rank_classes.h"

namespace shardwise::sim {
namespace {

/// The collective that an operation is, or nullptr.
const CollectiveWork* collective_of(const StageProgram& stage, const ProgramOp& op) {
  const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
  return cost.collectives.empty() ? nullptr : &cost.collectives.front();
}

/// Stages meet in the order of each such sequence: of all ranks of a pipeline, of a stage and its
/// mirror image, of the world.
constexpr std::size_t kCrossingKinds = 3;
std::size_t crossing_kind(const CollectiveWork& work) {
  if (work.group == GroupKind::world) return 2;
  return work.ends ? 1 : 0;
}

/// Whether the host waits for operation `i` before it issues the next. A send and the receive after
/// it are one batch, and the host waits at its end.
bool host_waits(const StageProgram& stage, std::size_t i, const LaunchRules& launch) {
  const ProgramOp& op = stage.operations[i];
  const bool last = i + 1 == stage.operations.size();
  if (launch.waits_for_messages && op.message >= 0) {
    return op.stream == Stream::receive || last || stage.operations[i + 1].message < 0;
  }
  return launch.waits_for_norm && !last && stage.operations[i + 1].role == OpRole::optimizer &&
         op.role != OpRole::optimizer;
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
    work.issued_from.resize(count);
  }
  double host = 0;
  std::uint32_t from = kFromBegin;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ProgramOp& op = stage.operations[i];
    const CostPrice& price = prices[static_cast<std::size_t>(op.cost)];
    for (const std::uint32_t wait : stage.of(op.waits)) {
      SHARDWISE_CHECK(wait < i, fmt::format("operation {} waits for {}", i, wait));
    }
    work.operations[at[static_cast<std::size_t>(op.stream)]++] = {price.seconds, i, op.waits, -1,
                                                                  op.cost};
    if (launch.issue > 0) {
      work.issued[i] = host + launch.issue * std::min(1.0, price.launches);
      host += launch.issue * price.launches;
      work.issued_last[i] = host;
      work.issued_from[i] = from;
      if (host_waits(stage, i, launch)) {
        from = i;
        host = 0;
      }
    }
  }
  return work;
}

/// Gives operations their slots while the programs are built.
class Slots {
 public:
  /// \param group_of  entry of Actor::groups for a kind of group, and whether it is a meeting
  Slots(Workload& work, const StepProgram& program) : work_(work), stages_(program.stages.size()) {
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
  /// The `nth` collective of the stage that crosses stages as `work` does.
  std::int32_t across(const CollectiveWork& work, std::size_t stage, std::size_t nth,
                      std::int32_t group, std::int32_t ranks) {
    std::size_t key = crossing_kind(work);
    if (work.ends) key = kCrossingKinds + std::min(stage, stages_ - 1 - stage);
    if (crossing_.size() <= key) crossing_.resize(key + 1);
    std::vector<std::int32_t>& found = crossing_[key];
    if (nth == found.size()) found.push_back(add(group));
    work_.slots[static_cast<std::size_t>(found[nth])].participants += ranks;
    return found[nth];
  }
  /// A collective of one stage: of as many as its group has.
  std::int32_t within(std::int32_t group) { return add(group); }

 private:
  std::int32_t add(std::int32_t group) {
    work_.slots.push_back({0, 0, group});
    return static_cast<std::int32_t>(work_.slots.size() - 1);
  }

  Workload& work_;
  std::vector<std::int32_t> messages_;
  std::size_t stages_;
  std::vector<std::vector<std::int32_t>> crossing_;  // pairs of stages each on their own
};

void number_meetings(Workload& work) {
  for (Slot& slot : work.slots) {
    slot.first_meeting = static_cast<std::uint32_t>(work.meetings);
    work.meetings += work.members[static_cast<std::size_t>(slot.group)].size();
  }
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

void add_links(Workload& work, std::span<const LinkKind> kinds, const RankClasses& classes) {
  std::vector<std::vector<LinkUse>> uses(classes.size());
  for (const LinkKind& kind : kinds) {
    const ClassSets sets = link_sets(kind, classes);
    std::vector<std::vector<std::uint32_t>> members(sets.sizes.size());
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      const std::uint32_t set = sets.of_class[c];
      members[set].push_back(c);
      uses[c].push_back({static_cast<std::uint32_t>(work.links.size()) + set, sets.ranks[c]});
    }
    for (const std::vector<std::uint32_t>& each : members) {
      const auto begin = static_cast<std::uint32_t>(work.link_members.size());
      work.link_members.insert(work.link_members.end(), each.begin(), each.end());
      const auto end = static_cast<std::uint32_t>(work.link_members.size());
      work.links.push_back({kind.tier, kind.capacity, {begin, end}});
    }
  }
  for (std::size_t c = 0; c < classes.size(); ++c) {
    work.actors[c].links.begin = static_cast<std::uint32_t>(work.link_uses.size());
    work.link_uses.insert(work.link_uses.end(), uses[c].begin(), uses[c].end());
    work.actors[c].links.end = static_cast<std::uint32_t>(work.link_uses.size());
  }
}

/// An actor for each class.
Workload of_classes(const StepProgram& program, const Prices& prices, const Layout& layout,
                    std::span<const LinkKind> links, const RankClasses& classes,
                    const LaunchRules& launch) {
  SHARDWISE_CHECK(program.stages.size() == static_cast<std::size_t>(layout.pp),
                  fmt::format("{} stages, pp {}", program.stages.size(), layout.pp));
  Workload work;
  work.launch = launch;
  const std::vector<GroupKind> kinds = group_kinds(program);
  std::vector<ClassSets> sets;
  for (const GroupKind kind : kinds) {
    sets.push_back(group_sets(layout, kind, classes));
    work.members.push_back(sets.back().sizes);
  }
  std::vector<std::int32_t> on_stage(program.stages.size());
  for (const std::uint32_t stage : classes.stage) ++on_stage[stage];
  const auto index_of = [&](GroupKind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
  };
  Slots slots(work, program);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    WorkProgram& made = work.programs.emplace_back(sorted(stage, prices[s], launch));
    number_slots(
        made, stage, slots,
        [&](const CollectiveWork& collective, std::size_t nth) {
          const auto group = static_cast<std::int32_t>(index_of(collective.group));
          const std::int32_t actors = collective.group == GroupKind::pp ? 1 : on_stage[s];
          return slots.across(collective, s, nth, group, actors);
        },
        [&](const CollectiveWork& collective) {
          const auto group = index_of(collective.group);
          const std::vector<std::int32_t>& sizes = work.members[static_cast<std::size_t>(group)];
          const bool alone = std::all_of(sizes.begin(), sizes.end(), [](auto n) { return n == 1; });
          return alone ? -1 : slots.within(static_cast<std::int32_t>(group));
        });
  }
  number_meetings(work);
  work.actor_of_rank = classes.of_rank;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto first = static_cast<std::uint32_t>(work.groups.size());
    const std::uint32_t stage = classes.stage[c];
    work.actors.push_back({stage, work.operations, first, classes.first[c], {}});
    for (const ClassSets& each : sets) work.groups.push_back(each.of_class[c]);
    work.operations += program.stages[stage].operations.size();
  }
  add_links(work, links, classes);
  return work;
}

}  // namespace

double Workload::noisy(std::uint32_t actor, const WorkOp& op) const {
  const Actor& rank = actors[actor];
  double seconds = op.duration;
  if (!noise.compute_factor.empty()) {
    const StageProgram& stage = program_of(rank);
    const ProgramOp& program_op = stage.operations[op.index];
    const bool computes =
        program_op.stream == Stream::compute && collective_of(stage, program_op) == nullptr;
    if (computes) seconds *= noise.compute_factor[actor];
  }
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
          return slots.across(collective, s, nth, 0, 1);
        },
        [](const CollectiveWork&) { return -1; });
    work.actors.push_back({static_cast<std::uint32_t>(s), work.operations, 0, 0, {}});
    work.operations += stage.operations.size();
  }
  work.groups = {0};
  work.members = {{1}};
  number_meetings(work);
  return work;
}

Workload representatives(const StepProgram& program, const Prices& prices, const Layout& layout,
                         std::span<const LinkKind> links, const LaunchRules& launch) {
  if (links.empty()) return representatives(program, prices, launch);
  const std::vector<GroupKind> kinds = group_kinds(program);
  return of_classes(program, prices, layout, links, alike_ranks(layout, links, kinds), launch);
}

Workload all_ranks(const StepProgram& program, const Prices& prices, const Layout& layout,
                   std::span<const LinkKind> links, const LaunchRules& launch) {
  return of_classes(program, prices, layout, links, single_ranks(layout), launch);
}

}  // namespace shardwise::sim
