#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/compare/compare_model.h"
#include "gui/models/memory/memory_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/memory_unit.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

constexpr float kMostBar = 64;
constexpr float kFlatPanel = 145;  // of a panel that is low below its heading
constexpr float kSmall = 10;       // letters of names on one line that is too short for them
constexpr float kLeastBars = 30;   // height
constexpr float kLowPanel = 110;   // of a panel without room for words above the bars
constexpr float kScale = 52;       // width of the axis
constexpr float kWordGap = 8;      // between names below the bars

struct BarsFrame {
  ImVec2 least;
  ImVec2 most;
  double top = 1;  // bytes
  MemoryUnit unit;
  float limit = 0;  // y of the usable memory; 0: beyond what is drawn
  float y(double bytes) const {
    return most.y - static_cast<float>(bytes / top) * (most.y - least.y);
  }
};

/// \param words  y of what is said of the usable memory; 0: nothing is
void draw_axis(Ui& ui, const BarsFrame& frame, Bytes usable, float words) {
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
  // Its words have a line of their own, which no bar reaches.
  if (words > 0) {
    draw_text(
        ui, {frame.least.x + ui.units(2), words},
        fitting(ui,
                fmt::format("usable {}{}", format_bytes(usable), frame.limit > 0 ? "" : ", above"),
                frame.most.x - frame.least.x),
        ui.ink(ui.theme.bad));
  }
  if (frame.limit <= 0) return;
  const ImVec2 least(frame.least.x, frame.limit - ui.units(1));
  const ImVec2 most(frame.most.x, frame.limit + ui.units(0.5F));
  list.AddRectFilled(least, most, ui.ink(ui.theme.bad));
  ui.probes.put("memory.limit", least, most);
}

/// What the other says, as a tick over the bar and beyond it, with its label beside the tick where
/// there is room.
void draw_tick(Ui& ui, const BarsFrame& frame, const std::string& label, const MemoryTick& tick,
               float centre, float width, float room) {
  const float y = std::floor(frame.y(static_cast<double>(tick.at.value())));
  const float left = centre - width / 2 - ui.units(5);
  const float right = centre + width / 2 + ui.units(5);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({left, y - ui.units(1.5F)}, {right, y + ui.units(1.5F)},
                     ui.ink(ui.theme.page));
  list.AddRectFilled({left, y - ui.units(1)}, {right, y + ui.units(1)}, ui.ink(ui.theme.text));
  ui.probes.put("memory.tick." + label, {left, y - ui.units(1)}, {right, y + ui.units(1)});
  ImGui::PushFont(ui.fonts.number, 13);
  const std::string value = frame.unit.number(tick.value);
  const float letters = ImGui::CalcTextSize(value.c_str()).x;
  if (right + ui.units(4) + letters < room) {
    const ImVec2 at(right + ui.units(4), y - ImGui::GetTextLineHeight() / 2);
    draw_text(ui, at, value, ui.ink(ui.theme.text));
    ui.probes.put("memory.tick." + label + ".label", at,
                  {at.x + letters, at.y + ImGui::GetTextLineHeight()});
  }
  ImGui::PopFont();
}

/// \param room  between the middles of two stacks: their labels do not touch
void draw_stack(Ui& ui, const BarsFrame& frame, const MemoryStack& stack, float centre, float width,
                float room, float least_top) {
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
    ui.probes.explain(fmt::format("memory.{}.{}", stack.label, label_of(group)), {left, top},
                      {right, bottom});
    if (ImGui::IsMouseHoveringRect({left, top}, {right, bottom}) && ImGui::IsWindowHovered()) {
      const std::string label(label_of(group));
      ImGui::SetTooltip("%s, %s\n%s of %s", stack.label.c_str(), label.c_str(),
                        format_bytes(stack.groups[g]).c_str(), format_bytes(stack.total).c_str());
      if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        ui.want("view.memory");
        ui.want("memory.open " + label);
      }
    }
  }
  const float top = frame.y(static_cast<double>(stack.total.value()));
  ui.probes.put("memory." + stack.label, {left, top}, {right, frame.most.y});
  ImGui::PushFont(ui.fonts.number, 13);
  const std::string value = frame.unit.number(stack.total);
  const ImVec2 size = ImGui::CalcTextSize(value.c_str());
  if (size.x + ui.units(kWordGap) < room) {
    float above = std::min(top, least_top) - size.y - ui.units(2);
    // Neither the line of the usable memory nor a bar below makes it hard to read.
    if (top > frame.limit && above < frame.limit + ui.units(2)) {
      above = std::max(top, frame.limit) + ui.units(3);
    }
    list.AddRectFilled({centre - size.x / 2 - 2, above}, {centre + size.x / 2 + 2, above + size.y},
                       ui.ink(ui.theme.panel, 0.85F));
    draw_text(ui, {centre, above}, value, ui.ink(stack.worst ? ui.theme.text : ui.theme.quiet),
              0.5F);
  }
  ImGui::PopFont();
}

/// A stack's name below it, a word a line where `wraps`; left out where it would touch the last
/// one's. \returns where it ends, and a gap
float draw_name(Ui& ui, const std::string& name, ImVec2 at, float taken, bool wraps, float gap) {
  const std::size_t space = wraps ? name.find(' ') : std::string::npos;
  const std::string first = name.substr(0, space);
  const std::string second = space == std::string::npos ? "" : name.substr(space + 1);
  const float half =
      std::max(ImGui::CalcTextSize(first.c_str()).x, ImGui::CalcTextSize(second.c_str()).x) / 2;
  if (at.x - half < taken) return taken;
  draw_text(ui, at, first, ui.ink(ui.theme.quiet), 0.5F);
  draw_text(ui, {at.x, at.y + ImGui::GetTextLineHeight()}, second, ui.ink(ui.theme.quiet), 0.5F);
  ui.probes.put("memory.name." + name, {at.x - half, at.y},
                {at.x + half, at.y + ImGui::GetTextLineHeight()});
  return at.x + half + gap;
}

void draw_bars(Ui& ui) {
  const std::vector<std::string> choices = {"by phase", "by stage"};
  const float width = segments_width(ui, choices);
  const std::vector<MemoryStack> stacks = memory_stacks(ui.state.report, ui.state.memory_by);
  Bytes largest;
  for (const MemoryStack& stack : stacks) largest = std::max(largest, stack.total);
  BarsFrame frame;
  frame.unit = memory_unit(largest);
  const Bytes usable = ui.state.report.verdict.usable;
  const std::string of_usable = fmt::format("of {}", format_bytes(usable));
  // A low panel has no line for the usable memory, so that its heading says it.
  const bool flat = ImGui::GetContentRegionAvail().y < ui.units(kFlatPanel);
  heading(ui, "Memory per GPU",
          flat && of_usable.ends_with(frame.unit.name) ? of_usable : frame.unit.name, width);
  to_right_edge(ui, width);
  const int clicked = segments(ui, "memory.by", choices, static_cast<int>(ui.state.memory_by));
  if (clicked >= 0 && clicked != static_cast<int>(ui.state.memory_by)) ui.want("memory.by");
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const auto group = static_cast<MemoryGroup>(g);
    entries.emplace_back(label_of(group), ui.theme.of(group));
  }
  constexpr float kRoomForLegend = 9;  // lines
  if (ImGui::GetContentRegionAvail().y > kRoomForLegend * ImGui::GetTextLineHeight()) {
    legend(ui, entries);
    ui.probes.put_item("memory.legend");
    if (!stacks.empty() && ui.state.workspace == Workspace::memory) {
      wrapped_text(ui, memory_sum(memory_numbers(ui.state.report)), ui.theme.quiet);
      ui.probes.put_item("memory.sum");
    }
  }

  if (stacks.empty()) return;
  const Compared* const other = ui.state.compare.overlay();
  std::vector<std::optional<MemoryTick>> ticks(stacks.size());
  if (other != nullptr && other->whole()) {
    ticks = memory_ticks(ui.state.report, other->report, ui.state.memory_by);
  }
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float step = (room.x - ui.units(kScale)) / static_cast<float>(stacks.size());
  const bool wraps = std::ranges::any_of(stacks, [&](const MemoryStack& stack) {
    return ImGui::CalcTextSize(stack.label.c_str()).x + ui.units(kWordGap) > step;
  });
  const bool low = room.y < ui.units(kLowPanel);
  const float below = wraps && !low && ui.state.memory_by == MemoryBy::phase ? 2 * line : line;
  frame.least = {begin.x + ui.units(kScale), begin.y + (low ? 1.0F : 2.0F) * line + ui.units(4)};
  frame.most = {begin.x + room.x, begin.y + room.y - below - ui.units(6)};
  Bytes most = axis_top(stacks, usable);
  for (const auto& tick : ticks) most = std::max(most, tick ? tick->at : Bytes(0));
  frame.top = 1.04 * static_cast<double>(most.value());
  if (frame.most.y - frame.least.y < ui.units(kLeastBars)) {
    return fitting_text(ui, "bars need a higher panel", ui.theme.quiet);
  }
  const float limit = frame.y(static_cast<double>(usable.value()));
  frame.limit = limit >= frame.least.y ? limit : 0;
  draw_axis(ui, frame, usable, low ? 0 : begin.y);
  const float bar = std::min(ui.units(kMostBar), step * 0.66F);
  float label_end = 0;
  const bool small = wraps && below <= line;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const float centre = frame.least.x + (static_cast<float>(i) + 0.5F) * step;
    // The bar's own label stands above a tick that is just over it.
    const float top = frame.y(static_cast<double>(stacks[i].total.value()));
    float label = top;
    const std::optional<MemoryTick>& tick = ticks[i];
    if (tick) {
      const float y = frame.y(static_cast<double>(tick->at.value()));
      if (y < top + ui.units(2) && y > top - line - ui.units(6)) label = y - ui.units(2);
    }
    draw_stack(ui, frame, stacks[i], centre, bar, step, label);
    if (tick) {
      draw_tick(ui, frame, stacks[i].label, *tick, centre, bar,
                frame.least.x + static_cast<float>(i + 1) * step);
    }
    if (small) ImGui::PushFont(nullptr, kSmall);
    label_end = draw_name(ui, stacks[i].label, {centre, frame.most.y + ui.units(4)}, label_end,
                          below > line, ui.units(small ? kWordGap / 4 : kWordGap));
    if (small) ImGui::PopFont();
  }
}

}  // namespace

void draw_memory(Ui& ui) {
  if (ui.state.workspace != Workspace::memory) return draw_bars(ui);
  constexpr float kLeastOfBars = 250;
  constexpr float kLeastOfTable = 130;
  const float room = ImGui::GetContentRegionAvail().y - ImGui::GetStyle().ItemSpacing.y;
  const float bars = std::max(ui.units(kLeastOfBars), room * 0.54F);
  if (ImGui::BeginChild("bars", {0, bars})) draw_bars(ui);
  ImGui::EndChild();
  if (ImGui::BeginChild("categories", {0, std::max(ui.units(kLeastOfTable), room - bars)})) {
    draw_categories(ui);
  }
  ImGui::EndChild();
}

}  // namespace shardwise::view
