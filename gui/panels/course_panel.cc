// Memory over the step, by group.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/memory/memory_course.h"
#include "gui/models/timeline/timeline_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

// Units.
constexpr float kLabelIndent = 15;
constexpr float kLiveIndent = 28;
constexpr float kValueGap = 8;
constexpr float kLeastOfCourse = 150;

struct Field {
  ImVec2 least;
  ImVec2 most;
  double top = 1;     // bytes
  double length = 1;  // seconds
  float x(double share) const { return least.x + static_cast<float>(share) * (most.x - least.x); }
  float y(double bytes) const {
    return most.y - static_cast<float>(bytes / top) * (most.y - least.y);
  }
};

void draw_scale(Ui& ui, const Field& field) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  float last = FLT_MAX;
  for (const sim::Tick& tick : sim::memory_ticks(Bytes(static_cast<std::int64_t>(field.top)))) {
    const float y = std::floor(field.y(tick.value));
    list.AddRectFilled({field.least.x, y}, {field.most.x, y + 1}, ui.ink(ui.theme.grid));
    if (last - y < ImGui::GetTextLineHeight()) continue;
    last = y;
    draw_text(ui, {field.least.x - ui.units(6), y - ImGui::GetTextLineHeight() / 2}, tick.label,
              ui.ink(ui.theme.quiet), 1);
  }
  constexpr float kLabel = 60;
  const Seconds length(field.length);
  for (const sim::Tick& tick :
       sim::time_ticks_between(Seconds(0), length, length, length,
                               sim::parts_within(field.most.x - field.least.x, ui.units(kLabel)))) {
    const float x = std::floor(field.x(tick.value / field.length));
    const float words = ImGui::CalcTextSize(tick.label.c_str()).x + ui.units(3);
    if (x + words > field.most.x + ui.units(4)) continue;
    list.AddRectFilled({x, field.most.y}, {x + 1, field.most.y + ui.units(4)},
                       ui.ink(ui.theme.grid));
    draw_text(ui, {x + ui.units(3), field.most.y + ui.units(2)}, tick.label,
              ui.ink(ui.theme.quiet));
  }
}

/// A pixel column of a group: from the fullest moment of what it covers.
void draw_areas(Ui& ui, const Field& field, const MemoryCourseView& course) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto pixels = static_cast<std::size_t>(field.most.x - field.least.x);
  const std::size_t parts = course.columns.size();
  for (std::size_t p = 0; p < pixels; ++p) {
    const std::size_t first = p * parts / pixels;
    const std::size_t last = std::max(first + 1, (p + 1) * parts / pixels);
    std::size_t fullest = first;
    for (std::size_t c = first; c < last; ++c) {
      if (course.total(c) > course.total(fullest)) fullest = c;
    }
    const float left = field.least.x + static_cast<float>(p);
    Bytes below;
    for (std::size_t g = 0; g < kMemoryGroups; ++g) {
      const Bytes bytes = course.columns[fullest][g];
      if (bytes <= Bytes(0)) continue;
      const float bottom = field.y(static_cast<double>(below.value()));
      below += bytes;
      list.AddRectFilled({left, field.y(static_cast<double>(below.value()))}, {left + 1, bottom},
                         ui.ink(ui.theme.of(static_cast<MemoryGroup>(g))));
    }
  }
}

/// The group under the pointer and the time.
void use_pointer(Ui& ui, const Field& field, const MemoryCourseView& course) {
  const ImVec2 at = ImGui::GetMousePos();
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(field.least, field.most)) return;
  const double share = static_cast<double>(at.x - field.least.x) / (field.most.x - field.least.x);
  const std::size_t column =
      std::min(course.columns.size() - 1,
               static_cast<std::size_t>(share * static_cast<double>(course.columns.size())));
  Bytes below;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const Bytes bytes = course.columns[column][g];
    const float bottom = field.y(static_cast<double>(below.value()));
    below += bytes;
    if (at.y > bottom || at.y < field.y(static_cast<double>(below.value()))) continue;
    const std::string label(label_of(static_cast<MemoryGroup>(g)));
    ImGui::SetTooltip("%s %s of %s at %s", label.c_str(), format_bytes(bytes).c_str(),
                      format_bytes(course.total(column)).c_str(),
                      format_seconds(Seconds(share * field.length)).c_str());
    if (ImGui::IsMouseReleased(ImGuiMouseButton_Left)) ui.want("memory.buffers " + label);
    return;
  }
}

/// Buffers of one name. How many there are gives way first, then the name, never the bytes.
void draw_live(Ui& ui, const LiveLine& line) {
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ui.units(kLiveIndent));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string bytes = format_bytes(line.bytes);
  const std::string counted = fmt::format(
      "{} in {}", line.label, line.count == 1 ? "1 buffer" : fmt::format("{} buffers", line.count));
  const float names = room - ImGui::CalcTextSize(bytes.c_str()).x - ui.units(kValueGap);
  const bool fits = ImGui::CalcTextSize(counted.c_str()).x <= names;
  ImGui::Dummy({room, ImGui::GetTextLineHeight()});
  ImGui::SetItemTooltip("%s: %s", counted.c_str(), bytes.c_str());
  ui.probes.put_item("course.live." + line.label);
  draw_text(ui, at, fits ? counted : fitting(ui, line.label, names), ui.ink(ui.theme.quiet));
  draw_text(ui, {at.x + room, at.y}, bytes, ui.ink(ui.theme.quiet), 1);
  ui.probes.put("course.live." + line.label + ".bytes",
                {at.x + room - ImGui::CalcTextSize(bytes.c_str()).x, at.y},
                {at.x + room, at.y + ImGui::GetTextLineHeight()});
}

/// Groups that can be clicked, and what the chosen one holds at the peak.
void draw_buffers(Ui& ui, const StepLanes& step) {
  const MemoryCourseView& course = step.memory;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const auto group = static_cast<MemoryGroup>(g);
    const Bytes bytes = course.columns[course.peak][g];
    if (bytes <= Bytes(0)) continue;
    const bool chosen = ui.state.memory_group == group;
    const std::string label(label_of(group));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float square = ui.units(9);
    const float top = at.y + (ImGui::GetTextLineHeight() - square) / 2;
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + square, top + square},
                                              ui.ink(ui.theme.of(group)), ui.units(2));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ui.units(kLabelIndent));
    const std::string value = format_bytes(bytes);
    const float edge = at.x + ImGui::GetContentRegionAvail().x + ui.units(kLabelIndent);
    if (ImGui::Selectable(fmt::format("##{}", label).c_str(), chosen)) {
      ui.want(chosen ? "memory.buffers" : "memory.buffers " + label);
    }
    ui.probes.put_item("course." + label);
    // The name gives way to the value.
    const float taken = ImGui::CalcTextSize(value.c_str()).x;
    draw_text(ui, {edge - taken, at.y}, value, ui.ink(ui.theme.text));
    draw_text(
        ui, {at.x + ui.units(kLabelIndent), at.y},
        fitting(ui, label, edge - taken - ui.units(kValueGap) - at.x - ui.units(kLabelIndent)),
        ui.ink(ui.theme.text));
    if (!chosen) continue;
    for (const LiveLine& line : live_lines(*step.report, course.stage, group)) {
      draw_live(ui, line);
    }
  }
}

/// How wide draw_buffers() has to be to show all words.
float width_of_buffers(Ui& ui, const StepLanes& step) {
  const auto width = [](const std::string& words) { return ImGui::CalcTextSize(words.c_str()).x; };
  float widest = 0;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    const auto group = static_cast<MemoryGroup>(g);
    const Bytes bytes = step.memory.columns[step.memory.peak][g];
    if (bytes <= Bytes(0)) continue;
    widest = std::max(widest, ui.units(kLabelIndent) + width(std::string(label_of(group))) +
                                  width(format_bytes(bytes)));
    if (ui.state.memory_group != group) continue;
    for (const LiveLine& line : live_lines(*step.report, step.memory.stage, group)) {
      widest = std::max(
          widest, ui.units(kLiveIndent) + width(line.label) + width(format_bytes(line.bytes)));
    }
  }
  return widest + ui.units(kValueGap);
}

}  // namespace

void draw_course(Ui& ui) {
  const StepLanes* const step = ui.state.lanes.get();
  heading(ui, "Memory over the step",
          step == nullptr || !step->simulated
              ? std::string("simulating …")
              : fmt::format("stage {}, most at {}: {}", step->memory.stage,
                            format_seconds(step->memory.peak_at),
                            memory_sum(memory_numbers(*step->report))));
  if (step == nullptr || !step->simulated || step->memory.columns.empty()) return;
  const MemoryCourseView& course = step->memory;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float line = ImGui::GetTextLineHeight();
  const float scroll = ImGui::GetStyle().ScrollbarSize;
  const float words = std::min(width_of_buffers(ui, *step) + scroll,
                               std::max(room.x / 2, room.x - ui.units(kLeastOfCourse)));
  if (ImGui::BeginChild("groups", {words, 0})) draw_buffers(ui, *step);
  ImGui::EndChild();
  ImGui::SameLine();
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 left = ImGui::GetContentRegionAvail();
  Field field;
  field.least = {std::floor(begin.x + ui.units(52)), begin.y + ui.units(4)};
  field.most = {std::floor(begin.x + left.x), begin.y + left.y - line - ui.units(6)};
  field.length = step->length;
  field.top = 1.04 * static_cast<double>(course.allocated.value());
  if (field.most.y - field.least.y < ui.units(30) || field.most.x - field.least.x < ui.units(60)) {
    return;
  }
  draw_scale(ui, field);
  draw_areas(ui, field, course);
  const float y = field.y(static_cast<double>(course.allocated.value()));
  const float x = field.x(course.peak_at.value() / step->length);
  ImGui::GetWindowDrawList()->AddLine({x, y}, {x, field.most.y}, ui.ink(ui.theme.text));
  ui.probes.put("course.peak", {x, y}, {x + 1, field.most.y});
  ui.probes.put("course.canvas", field.least, field.most);
  use_pointer(ui, field, course);
}

}  // namespace shardwise::view
