#include "gui/models/memory/memory_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/estimate/step_memory.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

std::size_t fullest_stage(const StepReport& report) {
  return std::min(static_cast<std::size_t>(report.verdict.worst_stage), report.stages.size() - 1);
}

}  // namespace

std::vector<MemoryStack> memory_stacks(const StepReport& report, MemoryBy by) {
  std::vector<MemoryStack> stacks;
  if (report.stages.empty()) return stacks;
  const std::size_t worst = fullest_stage(report);
  if (by == MemoryBy::phase) {
    const StageMemory& stage = report.stages[worst];
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      const auto phase = static_cast<MemoryPhase>(p);
      stacks.push_back({std::string(label_of(phase)), grouped(stage[phase]), stage[phase].total(),
                        Bytes(0), phase == stage.peak_phase()});
    }
    return stacks;
  }
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    const StageMemory& stage = report.stages[s];
    const Ledger& peak = stage[stage.peak_phase()];
    const Bytes upper = s < report.stage_upper.size() ? report.stage_upper[s] : Bytes(0);
    stacks.push_back({fmt::format("stage {}", s), grouped(peak), peak.total(), upper, s == worst});
  }
  return stacks;
}

std::vector<CategoryLine> category_lines(const StepReport& report) {
  std::vector<CategoryLine> lines;
  if (report.stages.empty()) return lines;
  const StageMemory& stage = report.stages[fullest_stage(report)];
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const auto group = static_cast<MemoryGroup>(g);
    CategoryLine whole{std::string(label_of(group)), group, true, {}};
    std::vector<CategoryLine> parts;
    for (const MemoryLabel& each : kMemoryLabels) {
      if (each.group != group) continue;
      CategoryLine part{std::string(each.label), group, false, {}};
      bool some = false;
      for (std::size_t p = 0; p < kMemoryPhases; ++p) {
        part.bytes[p] = Bytes(stage.phases[p][each.category]);
        whole.bytes[p] += part.bytes[p];
        some = some || part.bytes[p] > Bytes(0);
      }
      if (some) parts.push_back(std::move(part));
    }
    if (parts.empty()) continue;
    lines.push_back(std::move(whole));
    lines.insert(lines.end(), parts.begin(), parts.end());
  }
  return lines;
}

Bytes largest_of(const std::vector<CategoryLine>& lines) {
  Bytes most;
  for (const CategoryLine& line : lines) most = std::max(most, std::ranges::max(line.bytes));
  return most;
}

GroupedBytes peak_groups(const StepReport& report) {
  if (report.stages.empty()) return {};
  const StageMemory& stage = report.stages[fullest_stage(report)];
  return grouped(stage[stage.peak_phase()]);
}

GroupedBytes peak_groups(const Plan& plan, const Layout& layout) {
  const MemoryCosts costs = memory_costs(plan.model, plan.cluster, plan.job, plan.engine, layout);
  const StepMemory step = step_memory(plan.model, plan.cluster, plan.job, layout, costs);
  const StageMemory& stage = step.stages[static_cast<std::size_t>(step.verdict.worst_stage)];
  return grouped(stage[stage.peak_phase()]);
}

Bytes axis_top(const std::vector<MemoryStack>& stacks, Bytes usable) {
  Bytes most;
  for (const MemoryStack& stack : stacks) most = std::max({most, stack.total, stack.upper});
  return sim::memory_axis(most, usable);
}

}  // namespace shardwise::view
