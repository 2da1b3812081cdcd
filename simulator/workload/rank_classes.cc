#include "simulator/workload/rank_classes.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "planner/spec/text/mixed_bits.h"

namespace shardwise::sim {
namespace {

constexpr std::uint32_t kUnassigned = std::numeric_limits<std::uint32_t>::max();

/// A division of the ranks: of each rank its part, numbered from 0.
struct Parts {
  std::vector<std::uint32_t> of_rank;
  std::uint32_t count = 0;
};

Parts groups_of(const Layout& layout, GroupKind kind) {
  Parts parts;
  const std::int64_t world = layout.world();
  parts.of_rank.assign(static_cast<std::size_t>(world), kUnassigned);
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (parts.of_rank[static_cast<std::size_t>(rank)] != kUnassigned) continue;
    for (const std::int64_t each : group_ranks(layout, kind, rank)) {
      parts.of_rank[static_cast<std::size_t>(each)] = parts.count;
    }
    ++parts.count;
  }
  return parts;
}

Parts parts_on_links(const LinkKind& kind, std::size_t world) {
  Parts parts;
  parts.of_rank.resize(world);
  for (std::size_t r = 0; r < world; ++r) {
    parts.of_rank[r] = static_cast<std::uint32_t>(r / static_cast<std::size_t>(kind.ranks));
  }
  parts.count = world == 0 ? 0 : parts.of_rank.back() + 1;
  return parts;
}

/// The stage of a rank is its place among the ranks of its pipeline.
std::vector<std::uint32_t> stages_of(const Layout& layout) {
  std::vector<std::uint32_t> stages(static_cast<std::size_t>(layout.world()), kUnassigned);
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    if (stages[static_cast<std::size_t>(rank)] != kUnassigned) continue;
    std::uint32_t stage = 0;
    for (const std::int64_t each : group_ranks(layout, GroupKind::pp, rank)) {
      stages[static_cast<std::size_t>(each)] = stage++;
    }
  }
  return stages;
}

/// Numbers equal values alike, in the order in which they appear.
template <class Value>
RankClasses numbered(const std::vector<Value>& values, const std::vector<std::uint32_t>& stages) {
  RankClasses classes;
  classes.of_rank.resize(values.size());
  std::unordered_map<Value, std::uint32_t> numbers;
  for (std::size_t r = 0; r < values.size(); ++r) {
    const auto [at, fresh] =
        numbers.try_emplace(values[r], static_cast<std::uint32_t>(classes.first.size()));
    if (fresh) {
      classes.first.push_back(static_cast<std::int64_t>(r));
      classes.stage.push_back(stages[r]);
    }
    classes.of_rank[r] = at->second;
  }
  return classes;
}

/// Classes that meet in a part of `parts` have the lowest of them in common.
ClassSets sets_of(const Parts& parts, const RankClasses& classes) {
  std::vector<std::uint32_t> lowest(parts.count, kUnassigned);
  for (std::size_t r = 0; r < parts.of_rank.size(); ++r) {
    std::uint32_t& low = lowest[parts.of_rank[r]];
    low = std::min(low, classes.of_rank[r]);
  }
  ClassSets sets;
  std::vector<std::uint32_t> number(classes.size(), kUnassigned);
  for (const std::int64_t rank : classes.first) {
    std::uint32_t& set = number[lowest[parts.of_rank[static_cast<std::size_t>(rank)]]];
    if (set == kUnassigned) {
      set = static_cast<std::uint32_t>(sets.sizes.size());
      sets.sizes.push_back(0);
    }
    sets.of_class.push_back(set);
    ++sets.sizes[set];
  }
  sets.ranks.assign(classes.size(), 0);
  for (std::size_t r = 0; r < parts.of_rank.size(); ++r) {
    const std::uint32_t c = classes.of_rank[r];
    const std::size_t first = static_cast<std::size_t>(classes.first[c]);
    if (parts.of_rank[r] == parts.of_rank[first]) ++sets.ranks[c];
  }
  return sets;
}

}  // namespace

RankClasses single_ranks(const Layout& layout) {
  RankClasses classes;
  classes.stage = stages_of(layout);
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    classes.of_rank.push_back(static_cast<std::uint32_t>(rank));
    classes.first.push_back(rank);
  }
  return classes;
}

RankClasses alike_ranks(const Layout& layout, std::span<const LinkKind> links,
                        std::span<const GroupKind> kinds) {
  const std::vector<std::uint32_t> stages = stages_of(layout);
  const std::size_t world = stages.size();
  std::vector<Parts> divisions;
  for (const LinkKind& link : links) divisions.push_back(parts_on_links(link, world));
  for (const GroupKind kind : kinds) divisions.push_back(groups_of(layout, kind));
  RankClasses classes = numbered(stages, stages);
  // Ranks stay alike as long as each division shows them the same classes; the sum of a part's
  // mixed classes stands for the classes in it.
  for (;;) {
    std::vector<std::uint64_t> seen(world);
    for (std::size_t r = 0; r < world; ++r) seen[r] = mixed(0, classes.of_rank[r]);
    for (const Parts& parts : divisions) {
      std::vector<std::uint64_t> sums(parts.count);
      for (std::size_t r = 0; r < world; ++r) {
        sums[parts.of_rank[r]] += mixed(1, classes.of_rank[r]);
      }
      for (std::size_t r = 0; r < world; ++r) seen[r] = mixed(seen[r], sums[parts.of_rank[r]]);
    }
    RankClasses finer = numbered(seen, stages);
    if (finer.size() == classes.size()) return finer;
    classes = std::move(finer);
  }
}

std::vector<GroupKind> group_kinds(const StepProgram& program) {
  std::vector<GroupKind> kinds = {GroupKind::pp};
  for (const StageProgram& stage : program.stages) {
    for (const OpCost& cost : stage.costs) {
      if (cost.collectives.empty()) continue;
      const GroupKind kind = cost.collectives.front().group;
      if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<std::uint32_t> actors_of_ranks(const StepProgram& program, const Layout& layout,
                                           std::span<const LinkKind> links) {
  if (!links.empty()) return alike_ranks(layout, links, group_kinds(program)).of_rank;
  return stages_of(layout);  // an actor a stage
}

ClassSets group_sets(const Layout& layout, GroupKind kind, const RankClasses& classes) {
  return sets_of(groups_of(layout, kind), classes);
}

ClassSets link_sets(const LinkKind& kind, const RankClasses& classes) {
  return sets_of(parts_on_links(kind, classes.of_rank.size()), classes);
}

}  // namespace shardwise::sim
