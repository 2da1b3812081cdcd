#include "gui/panels/timeline_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace shardwise::view {
namespace {

constexpr float kClick = 4;                // pixels within which a press is no drag
constexpr float kEdgeReach = 4;            // on either side of an edge that can be taken hold of
constexpr double kLeastDraggedBlock = 14;  // pixels of a block whose edge can be
constexpr float kScrollStep = 36;          // units of a notch of the wheel
constexpr double kLeastFactor = 0.05;
constexpr double kMostFactor = 20;

bool is_inside(const Canvas& canvas, const LaneField& field, ImVec2 at) {
  return at.x >= canvas.left && at.x <= canvas.right && at.y >= field.top && at.y <= field.bottom;
}

const DrawnLane* lane_at(std::span<const DrawnLane> lanes, float y) {
  const auto found = std::ranges::find_if(
      lanes, [y](const DrawnLane& each) { return y >= each.top && y < each.bottom; });
  return found == lanes.end() ? nullptr : &*found;
}

std::string place_text(const Lane& lane, double seconds) {
  return fmt::format("{} {}", text_of(name_of(lane)), std::max(0.0, seconds));
}

/// The block whose right edge is under the pointer; size() of the lane's blocks where none is.
std::size_t edge_at(const Canvas& canvas, const Lane& lane, float x) {
  const double slack = canvas.seconds(x + kEdgeReach) - canvas.seconds(x);
  const auto [first, last] =
      blocks_in(lane, {canvas.seconds(x) - slack, canvas.seconds(x) + slack});
  for (std::size_t b = first; b < last; ++b) {
    const auto [begin, end] = lane.block(b);
    const double to = lane.spans.end[end - 1];
    if (canvas.pixels(to - lane.spans.active_start[begin]) < kLeastDraggedBlock) continue;
    if (std::abs(canvas.x(to) - x) <= kEdgeReach) return b;
  }
  return lane.blocks.size();
}

/// Where the pointer is or, while a button is held and when it is let go, where it was pressed.
ImVec2 pointer_begin() {
  for (const ImGuiMouseButton button : {ImGuiMouseButton_Left, ImGuiMouseButton_Middle}) {
    if (ImGui::IsMouseDown(button) || ImGui::IsMouseReleased(button)) {
      return ImGui::GetIO().MouseClickedPos[button];
    }
  }
  return ImGui::GetIO().MousePos;
}

/// The part that a place is in, or the nearest.
const Canvas& part_at(std::span<const Canvas> parts, float x) {
  const auto found =
      std::ranges::find_if(parts, [x](const Canvas& each) { return x < each.right; });
  return found == parts.end() ? parts.back() : *found;
}

/// \param cut  the canvas is one of several parts: zooming shows it alone
void use_wheel(Ui& ui, const Canvas& canvas, const LaneField& field, bool cut) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0) return;
  if (io.KeyShift) return ui.want(fmt::format("timeline.pan {}", -0.1 * io.MouseWheel));
  if (io.KeyCtrl || ui.state.timeline.wheel_zooms) {
    const double share =
        std::clamp((io.MousePos.x - canvas.left) / (canvas.right - canvas.left), 0.0F, 1.0F);
    const double factor = std::pow(0.8, io.MouseWheel);
    if (!cut) return ui.want(fmt::format("timeline.zoom {} {}", factor, share));
    if (factor >= 1) return;
    const double still = canvas.range.from + share * canvas.range.length();
    const double from = still - share * factor * canvas.range.length();
    return ui.want(fmt::format("timeline.show {} {}", std::max(0.0, from),
                               from + factor * canvas.range.length()));
  }
  const float to = std::clamp(field.scroll - kScrollStep * io.MouseWheel, 0.0F, field.most_scroll);
  if (to != field.scroll) ui.want(fmt::format("timeline.scroll {}", to));
}

void draw_band(Ui& ui, const LaneField& field, float from, float to) {
  ImGui::GetWindowDrawList()->AddRectFilled({std::min(from, to), field.top},
                                            {std::max(from, to), field.bottom},
                                            ui.ink(ui.theme.accent, 0.18F));
}

/// The edge of a block follows the pointer: the step is simulated again at that length.
void stretch(Ui& ui, const Canvas& canvas) {
  const TimelineView& view = ui.state.timeline;
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) return ui.want("timeline.drop");
  ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2) || ImGui::GetIO().MouseDelta.x == 0) return;
  const double length = canvas.seconds(ImGui::GetMousePos().x) - view.grabbed->from;
  const double factor = std::clamp(length / view.grabbed->length(), kLeastFactor, kMostFactor);
  ui.want(fmt::format("timeline.stretch {} {:.3f}", view.grabbed_word, factor));
}

void use_left(Ui& ui, const Canvas& canvas, std::span<const DrawnLane> lanes) {
  const ImGuiIO& io = ImGui::GetIO();
  const float x = io.MousePos.x;
  const DrawnLane* const under = lane_at(lanes, io.MousePos.y);
  const bool edge = under != nullptr && !ImGui::IsMouseDown(ImGuiMouseButton_Left) &&
                    edge_at(canvas, *under->lane, x) < under->lane->blocks.size();
  if (edge) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !io.KeyShift && under != nullptr) {
    const std::size_t block = edge_at(canvas, *under->lane, x);
    if (block < under->lane->blocks.size()) {
      const std::size_t last = under->lane->block(block).second - 1;
      const double middle =
          (under->lane->spans.active_start[last] + under->lane->spans.end[last]) / 2;
      return ui.want("timeline.grab " + place_text(*under->lane, middle));
    }
  }
  const float pressed = io.MouseClickedPos[ImGuiMouseButton_Left].x;
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, kClick) && !io.KeyShift) {
    const double from =
        std::max(0.0, canvas.seconds(std::clamp(pressed, canvas.left, canvas.right)));
    const double to = std::max(0.0, canvas.seconds(std::clamp(x, canvas.left, canvas.right)));
    return ui.want(fmt::format("timeline.measure {} {}", from, to));
  }
  const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                       std::abs(pressed - x) <= kClick && under != nullptr;
  if (clicked) ui.want("timeline.select " + place_text(*under->lane, canvas.seconds(x)));
}

void use_middle(Ui& ui, const Canvas& canvas, const LaneField& field) {
  const ImGuiIO& io = ImGui::GetIO();
  const float pressed = io.MouseClickedPos[ImGuiMouseButton_Middle].x;
  const float from = std::clamp(pressed, canvas.left, canvas.right);
  const float to = std::clamp(io.MousePos.x, canvas.left, canvas.right);
  if (std::abs(to - from) <= kClick) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Middle)) return draw_band(ui, field, from, to);
  if (!ImGui::IsMouseReleased(ImGuiMouseButton_Middle)) return;
  ui.want(fmt::format("timeline.show {} {}", std::max(0.0, canvas.seconds(std::min(from, to))),
                      std::max(0.0, canvas.seconds(std::max(from, to)))));
}

void show_span(const Canvas& canvas, const DrawnLane& under, const StepLanes& step) {
  const float x = ImGui::GetMousePos().x;
  const double pixel = canvas.range.length() / canvas.width();
  const std::size_t span = span_at(*under.lane, canvas.seconds(x), pixel);
  if (span == under.lane->spans.size()) return;
  ImGui::SetTooltip("stage %zu, %s\n%s", under.lane->stage,
                    under.lane->stream == Stream::compute ? "compute" : under.lane->label.c_str(),
                    span_text(step, *under.lane, span).c_str());
}

}  // namespace

void use_mouse(Ui& ui, std::span<const Canvas> parts, const LaneField& field,
               std::span<const DrawnLane> lanes, const StepLanes& step) {
  const std::optional<TimeRange>& grabbed = ui.state.timeline.grabbed;
  if (grabbed) {
    const auto holds = [&](const Canvas& part) { return grabbed->from < part.range.to; };
    const auto part = std::ranges::find_if(parts, holds);
    return stretch(ui, part == parts.end() ? parts.back() : *part);
  }
  if (!ImGui::IsWindowHovered()) return;
  const ImGuiIO& io = ImGui::GetIO();
  const Canvas& canvas = part_at(parts, pointer_begin().x);
  use_wheel(ui, canvas, field, parts.size() > 1);
  const bool panning = (ImGui::IsMouseDragging(ImGuiMouseButton_Right, 0) ||
                        (io.KeyShift && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0))) &&
                       io.MouseDelta.x != 0;
  if (panning) {
    ui.want(fmt::format("timeline.pan {}", -io.MouseDelta.x / (canvas.right - canvas.left)));
  }
  if (is_inside(canvas, field, io.MouseClickedPos[ImGuiMouseButton_Left]))
    use_left(ui, canvas, lanes);
  if (is_inside(canvas, field, io.MouseClickedPos[ImGuiMouseButton_Middle])) {
    use_middle(ui, canvas, field);
  }
  if (!is_inside(canvas, field, io.MousePos) || ImGui::IsAnyMouseDown()) return;
  const DrawnLane* const under = lane_at(lanes, io.MousePos.y);
  if (under != nullptr) show_span(canvas, *under, step);
}

}  // namespace shardwise::view
