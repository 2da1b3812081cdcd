#include "gui/panels/measured_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gui/models/measured_lanes.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

constexpr float kLane = 10;
constexpr float kStrip = 4;
constexpr double kLeastSpan = 3;  // pixels: narrower spans are columns as dense as they are busy

/// Moments of the other step as pixels.
struct OwnCanvas {
  float left = 0;
  float right = 0;
  TimeRange range;  // of the other step
  float x(double seconds) const {
    return left + static_cast<float>((seconds - range.from) / range.length()) * (right - left);
  }
};

void draw_outlines(Ui& ui, const OwnCanvas& canvas, const Lane& lane, float top, float bottom) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  std::vector<Span> narrow;
  for (const Span& span : spans_in(lane.spans, canvas.range)) {
    const float from = std::max(canvas.left, canvas.x(span.active));
    const float to = std::min(canvas.right, canvas.x(span.end));
    if (static_cast<double>(to - from) < kLeastSpan) {
      narrow.push_back(span);
      continue;
    }
    const std::string_view ink = ui.theme.of(span.paint);
    list.AddRectFilled({from, top}, {to, bottom}, ui.ink(ink, 0.18F));
    list.AddRect({from, top}, {to, bottom}, ui.ink(ink));
  }
  const auto columns = static_cast<std::size_t>(std::max(0.0F, canvas.right - canvas.left));
  const std::vector<Coverage> covered = coverage(narrow, canvas.range, columns);
  for (std::size_t c = 0; c < covered.size(); ++c) {
    if (covered[c].share <= 0) continue;
    const float x = canvas.left + static_cast<float>(c);
    list.AddRectFilled({x, top}, {x + 1, bottom},
                       ui.ink(ui.theme.of(covered[c].paint), 0.5F * covered[c].share));
  }
}

void draw_strip(Ui& ui, const std::vector<float>& more, float left, float top, float bottom) {
  for (std::size_t c = 0; c < more.size(); ++c) {
    constexpr float kLittle = 0.02F;
    if (std::abs(more[c]) < kLittle) continue;
    const float x = left + static_cast<float>(c);
    ImGui::GetWindowDrawList()->AddRectFilled(
        {x, top}, {x + 1, bottom},
        ui.ink(more[c] > 0 ? ui.theme.warning : ui.theme.accent, std::abs(more[c])));
  }
}

void hover(const OwnCanvas& canvas, const Lane& lane, float top, float bottom) {
  if (!ImGui::IsWindowHovered() ||
      !ImGui::IsMouseHoveringRect({canvas.left, top}, {canvas.right, bottom})) {
    return;
  }
  const double pixel = canvas.range.length() / static_cast<double>(canvas.right - canvas.left);
  const double time =
      canvas.range.from + pixel * static_cast<double>(ImGui::GetMousePos().x - canvas.left);
  for (const Span& span : spans_in(lane.spans, {time - pixel, time + pixel})) {
    ImGui::SetTooltip("compared with\n%s", span_text(span).c_str());
    return;
  }
}

}  // namespace

LaneBeside lane_beside(const Ui& ui) {
  const CompareView* const view = ui.state.compare.overlay_view();
  if (view == nullptr || view->lanes.lanes.empty()) return {};
  return {ui.units(kLane), ui.units(kStrip)};
}

void draw_measured_lane(Ui& ui, const LaneBeside& beside, const Lane& predicted, float left,
                        float right, float top) {
  const CompareView* const view = ui.state.compare.overlay_view();
  if (beside.lane <= 0 || view == nullptr || ui.state.lanes == nullptr) return;
  const Lane* const lane = view->lanes.find(predicted.stage, predicted.stream);
  if (lane == nullptr) return;
  const double axis = ui.state.lanes->length;
  const OwnRange own = ui.state.compare.own_range(axis);
  const TimeRange range = ui.state.range;
  const OwnCanvas canvas{
      left, right, {off_axis(range.from, own, axis), off_axis(range.to, own, axis)}};
  const float bottom = top + beside.lane - ui.units(1);
  draw_outlines(ui, canvas, *lane, top, bottom);
  hover(canvas, *lane, top, bottom);
  const std::string probe =
      fmt::format("timeline.{}.{}", predicted.stage, name_of(predicted.stream));
  ui.probes.put(probe + ".measured", {left, top}, {right, bottom});
  if (predicted.stream != Stream::compute) return;
  const auto columns = static_cast<std::size_t>(std::max(0.0F, right - left));
  const float strip = top + beside.lane;
  draw_strip(ui, busier(predicted, *lane, own, axis, range, columns), left, strip,
             strip + beside.strip - ui.units(1));
  ui.probes.put(probe + ".difference", {left, strip}, {right, strip + beside.strip});
}

}  // namespace shardwise::view
