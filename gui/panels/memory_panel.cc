#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/memory_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/format.h"
#include "simulator/timeline_ticks.h"

namespace shardwise::view {
namespace {

constexpr float kMostBar = 64;

struct Frame {
  ImVec2 least;
  ImVec2 most;
  double top = 1;  // bytes
  float y(double bytes) const {
    return most.y - static_cast<float>(bytes / top) * (most.y - least.y);
  }
};

void draw_axis(Ui& ui, const Frame& frame, Bytes usable) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  float last = FLT_MAX;
  for (const sim::Tick& tick : sim::memory_ticks(Bytes(static_cast<std::int64_t>(frame.top)))) {
    const float y = std::floor(frame.y(tick.value));
    list.AddRectFilled({frame.least.x, y}, {frame.most.x, y + 1}, ui.ink(ui.theme.grid));
    if (last - y < ImGui::GetTextLineHeight()) continue;
    last = y;
    draw_text(ui, {frame.least.x - ui.units(6), y - ImGui::GetTextLineHeight() / 2}, tick.label,
              ui.ink(ui.theme.quiet), 1);
  }
  const float y = frame.y(static_cast<double>(usable.value()));
  list.AddRectFilled({frame.least.x, y - ui.units(1)}, {frame.most.x, y + ui.units(0.5F)},
                     ui.ink(ui.theme.bad));
  draw_text(ui, {frame.least.x + ui.units(2), y - ImGui::GetTextLineHeight() - ui.units(2)},
            "usable " + format_bytes(usable), ui.ink(ui.theme.bad));
  ui.probes.put("memory.limit", {frame.least.x, y - ui.units(1)},
                {frame.most.x, y + ui.units(0.5F)});
}

void draw_stack(Ui& ui, const Frame& frame, const MemoryStack& stack, float centre, float width) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float left = std::floor(centre - width / 2);
  const float right = std::floor(centre + width / 2);
  Bytes sum;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    if (stack.groups[g] == Bytes(0)) continue;
    const float bottom = frame.y(static_cast<double>(sum.value()));
    sum += stack.groups[g];
    const float top = frame.y(static_cast<double>(sum.value()));
    const auto group = static_cast<MemoryGroup>(g);
    list.AddRectFilled({left, top}, {right, bottom}, ui.ink(ui.theme.of(group)));
    ui.probes.put(fmt::format("memory.{}.{}", stack.label, label_of(group)), {left, top},
                  {right, bottom});
    if (ImGui::IsMouseHoveringRect({left, top}, {right, bottom}) && ImGui::IsWindowHovered()) {
      const std::string label(label_of(group));
      ImGui::SetTooltip("%s, %s\n%s of %s", stack.label.c_str(), label.c_str(),
                        format_bytes(stack.groups[g]).c_str(), format_bytes(stack.total).c_str());
    }
  }
  const float top = frame.y(static_cast<double>(stack.total.value()));
  ui.probes.put("memory." + stack.label, {left, top}, {right, frame.most.y});
  ImGui::PushFont(ui.fonts.number, 13);
  const std::string value = format_gib(stack.total);
  if (ImGui::CalcTextSize(value.c_str()).x < width * 1.9F) {
    draw_text(ui, {centre, top - ImGui::GetTextLineHeight() - ui.units(2)}, value,
              ui.ink(stack.worst ? ui.theme.text : ui.theme.quiet), 0.5F);
  }
  ImGui::PopFont();
}

}  // namespace

void draw_memory(Ui& ui) {
  heading(ui, "Memory per GPU", "GiB");
  const std::vector<std::string> choices = {"by phase", "by stage"};
  const float width = segments_width(ui, choices);
  ImGui::SameLine(std::max(ImGui::GetCursorPosX(),
                           ImGui::GetWindowWidth() - width - ImGui::GetStyle().WindowPadding.x));
  const int clicked = segments(ui, "memory.by", choices, static_cast<int>(ui.state.memory_by));
  if (clicked >= 0 && clicked != static_cast<int>(ui.state.memory_by)) ui.want("memory.by");
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const auto group = static_cast<MemoryGroup>(g);
    entries.emplace_back(label_of(group), ui.theme.of(group));
  }
  constexpr float kRoomForLegend = 14;  // lines
  if (ImGui::GetContentRegionAvail().y > kRoomForLegend * ImGui::GetTextLineHeight()) {
    legend(ui, entries);
  }

  const std::vector<MemoryStack> stacks = memory_stacks(ui.state.report, ui.state.memory_by);
  if (stacks.empty()) return;
  const Bytes usable = ui.state.report.verdict.usable;
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  Frame frame;
  frame.least = {begin.x + ui.units(52), begin.y + line + ui.units(4)};
  frame.most = {begin.x + room.x, begin.y + room.y - line - ui.units(6)};
  frame.top = 1.04 * static_cast<double>(axis_top(stacks, usable).value());
  if (frame.most.y - frame.least.y < ui.units(30)) return;
  draw_axis(ui, frame, usable);
  const float step = (frame.most.x - frame.least.x) / static_cast<float>(stacks.size());
  const float bar = std::min(ui.units(kMostBar), step * 0.66F);
  float label_end = 0;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const float centre = frame.least.x + (static_cast<float>(i) + 0.5F) * step;
    draw_stack(ui, frame, stacks[i], centre, bar);
    const float half = ImGui::CalcTextSize(stacks[i].label.c_str()).x / 2;
    if (centre - half < label_end) continue;
    label_end = centre + half + ui.units(8);
    draw_text(ui, {centre, frame.most.y + ui.units(4)}, stacks[i].label, ui.ink(ui.theme.quiet),
              0.5F);
  }
}

}  // namespace shardwise::view
