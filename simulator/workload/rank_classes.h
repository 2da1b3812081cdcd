#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/links.h"

namespace shardwise::sim {

/// Ranks that do the same at the same times: one of each class is simulated.
struct RankClasses {
  std::vector<std::uint32_t> of_rank;  // classes are numbered by their lowest rank
  std::vector<std::int64_t> first;     // that rank
  std::vector<std::uint32_t> stage;    // of its pipeline
  std::size_t size() const { return first.size(); }
};

/// Every rank is a class of its own.
RankClasses single_ranks(const Layout& layout);

/// The coarsest classes in which ranks of one class are on one stage, share links with as many
/// ranks of each class, and meet as many of each class in their groups of every kind. Without
/// noise such ranks start and end everything together.
/// \param kinds  of groups that the step program communicates in
RankClasses alike_ranks(const Layout& layout, std::span<const LinkKind> links,
                        std::span<const GroupKind> kinds);

/// Kinds of groups that a program communicates in; pipelines first, for messages.
std::vector<GroupKind> group_kinds(const StepProgram& program);

/// By rank, the actor that stands for it where representatives are simulated on such links.
std::vector<std::uint32_t> actors_of_ranks(const StepProgram& program, const Layout& layout,
                                           std::span<const LinkKind> links);

/// The classes that a class meets in its groups of one kind, or on its links of one kind: sets of
/// classes, numbered from 0.
struct ClassSets {
  std::vector<std::uint32_t> of_class;
  std::vector<std::int32_t> sizes;  // classes in each set
  std::vector<std::int32_t> ranks;  // by class: its ranks in one group, or on one link
};
ClassSets group_sets(const Layout& layout, GroupKind kind, const RankClasses& classes);
ClassSets link_sets(const LinkKind& kind, const RankClasses& classes);

}  // namespace shardwise::sim
