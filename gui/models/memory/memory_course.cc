#include "gui/models/memory/memory_course.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "simulator/clock/step_report.h"

namespace shardwise::view {

Bytes MemoryCourseView::total(std::size_t column) const {
  Bytes sum;
  for (const Bytes each : columns[column]) sum += each;
  return sum;
}

MemoryCourseView memory_course(const sim::Simulation& simulation, AllocatorKind allocator,
                               std::size_t stage, std::size_t columns) {
  const StageProgram& program = simulation.program.stages[stage];
  const std::size_t base = simulation.actor_of(stage).base;
  const std::size_t count = program.operations.size();
  const std::vector<sim::CategoryBytes> found =
      sim::category_columns(program, std::span(simulation.timeline.start).subspan(base, count),
                            std::span(simulation.timeline.end).subspan(base, count), allocator,
                            simulation.timeline.length(), columns);
  MemoryCourseView view;
  view.stage = stage;
  view.allocated = Bytes(simulation.memory[stage].peak_allocated);
  view.peak_at = Seconds(simulation.memory[stage].peak_at);
  view.outside = sim::outside_allocator(simulation.report, stage);
  for (const sim::CategoryBytes& each : found) {
    GroupedBytes& groups = view.columns.emplace_back();
    for (const MemoryLabel& label : kMemoryLabels) {
      groups[static_cast<std::size_t>(label.group)] +=
          Bytes(each[static_cast<std::size_t>(label.category)]);
    }
    if (view.total(view.columns.size() - 1) > view.total(view.peak)) {
      view.peak = view.columns.size() - 1;
    }
  }
  return view;
}

std::vector<LiveLine> live_lines(const StepReport& report, std::size_t stage, MemoryGroup group) {
  std::vector<LiveLine> lines;
  const StepTimeline& timeline = sim::timeline_of(report);
  if (stage >= timeline.stages.size()) return lines;
  for (const LiveBuffers& live : timeline.stages[stage].at_peak) {
    const MemoryLabel& label = kMemoryLabels[static_cast<std::size_t>(live.category)];
    if (label.group != group) continue;
    std::string words(label.label);
    if (live.layer >= 0) words += fmt::format(", layer {}", live.layer);
    lines.push_back({std::move(words), live.count, live.bytes});
  }
  return lines;
}

}  // namespace shardwise::view
