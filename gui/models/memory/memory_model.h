#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise::view {

/// A stack of bytes by group: its segments sum to `total` exactly.
struct MemoryStack {
  std::string label;  // "first pass", "stage 3"
  GroupedBytes groups{};
  Bytes total;
  Bytes upper;  // bound; 0 = none
  bool worst = false;
};

enum class MemoryBy : std::uint8_t { phase, stage };

/// Stacks by phase of the fullest stage, or by stage at the peak of each.
std::vector<MemoryStack> memory_stacks(const StepReport& report, MemoryBy by);

/// A line of the table of categories: a group, or one of its categories below it.
struct CategoryLine {
  std::string label;
  MemoryGroup group = MemoryGroup::weights;
  bool whole_group = false;
  std::array<Bytes, kMemoryPhases> bytes{};  // by phase
};
/// Lines of the fullest stage: every group with its categories, in the order of the groups; those
/// that are nowhere more than nothing. A group's bytes are the sum of its categories'.
std::vector<CategoryLine> category_lines(const StepReport& report);
/// The most that a group has in a phase.
Bytes largest_of(const std::vector<CategoryLine>& lines);

/// The peak of the fullest GPU by group: what a row's bar shows.
GroupedBytes peak_groups(const StepReport& report);
/// Groups of a layout of the plan's question, without its times.
GroupedBytes peak_groups(const Plan& plan, const Layout& layout);

/// End of an axis of memory: all stacks, and the usable memory unless stacks would be too flat to
/// be seen below it.
Bytes axis_top(const std::vector<MemoryStack>& stacks, Bytes usable);

}  // namespace shardwise::view
