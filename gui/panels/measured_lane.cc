#include "gui/panels/measured_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gui/models/compare/measured_lanes.h"
#include "gui/panels/timeline_drawing.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr float kLane = 10;
constexpr float kMeasuredStrip = 4;
constexpr double kLeastSpan = 3;  // pixels that an outline takes

/// Outlines of what is wide enough, over columns as dense as they are busy.
void draw_outlines(Ui& ui, const Canvas& canvas, const Lane& lane, float top, float bottom) {
  const auto columns = static_cast<std::size_t>(std::max(0.0, canvas.width()));
  std::optional<Fills> fills(std::in_place);
  for (const auto& [begin, end, shown] :
       coverage_runs(lane, ColourBy::kind, canvas.range, columns)) {
    const auto* const most = std::ranges::max_element(shown.shares);
    if (*most <= 0) continue;
    const auto paint = static_cast<sim::Paint>(most - shown.shares.begin());
    fills->add({canvas.left + static_cast<float>(begin), top},
               {canvas.left + static_cast<float>(end), bottom},
               ui.ink(ui.theme.of(paint), 0.3F * shown.share()));
  }
  fills.reset();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto [first, last] = blocks_in(lane, canvas.range);
  for (std::size_t b = first; b < last; ++b) {
    const auto [begin, end] = lane.block(b);
    const float from = std::max(canvas.left, canvas.x(lane.spans.active_start[begin]));
    const float to = std::min(canvas.right, canvas.x(lane.spans.end[end - 1]));
    if (static_cast<double>(to - from) < kLeastSpan) continue;
    list.AddRect({from, top}, {to, bottom}, ui.ink(ui.theme.of(lane.spans.kind[begin])));
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

void hover_span(const Canvas& canvas, const Lane& lane, float top, float bottom) {
  if (!ImGui::IsWindowHovered() ||
      !ImGui::IsMouseHoveringRect({canvas.left, top}, {canvas.right, bottom})) {
    return;
  }
  const double pixel = canvas.range.length() / canvas.width();
  const std::size_t span = span_at(lane, canvas.seconds(ImGui::GetMousePos().x), pixel);
  if (span < lane.spans.size()) {
    ImGui::SetTooltip("compared with\n%s", span_text(StepLanes(), lane, span).c_str());
  }
}

}  // namespace

LaneBeside lane_beside(const Ui& ui) {
  const CompareView* const view = ui.state.compare.overlay_view();
  if (view == nullptr || view->lanes.lanes.empty()) return {};
  return {ui.units(kLane), ui.units(kMeasuredStrip)};
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
  const Canvas canvas{
      left, right, {off_axis(range.from, own, axis), off_axis(range.to, own, axis)}};
  const float bottom = top + beside.lane - ui.units(1);
  draw_outlines(ui, canvas, *lane, top, bottom);
  hover_span(canvas, *lane, top, bottom);
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
