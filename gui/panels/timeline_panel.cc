#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/timeline_model.h"
#include "gui/panels/measured_lane.h"
#include "gui/panels/panels.h"
#include "planner/spec/format.h"
#include "simulator/timeline_ticks.h"

namespace shardwise::view {
namespace {

constexpr float kLabels = 118;
constexpr float kTallLane = 30;
constexpr float kFlatLane = 12;
constexpr float kStrip = 5;       // of exposed time, below a stage's compute
constexpr float kBetween = 3;     // lanes
constexpr float kStages = 10;     // between stages
constexpr double kLeastSpan = 3;  // pixels: narrower spans are drawn as coverage

struct Canvas {
  float left = 0;
  float right = 0;
  TimeRange range;
  float x(double seconds) const {
    return left + static_cast<float>((seconds - range.from) / range.length()) * (right - left);
  }
  double pixels(double seconds) const { return seconds / range.length() * (right - left); }
};

void draw_ticks(Ui& ui, const Canvas& canvas, double length, float top, float bottom) {
  const std::vector<sim::Tick> ticks =
      sim::time_ticks_between(Seconds(canvas.range.from), Seconds(canvas.range.to),
                              Seconds(canvas.range.length()), Seconds(length));
  for (const sim::Tick& tick : ticks) {
    const float x = std::floor(canvas.x(tick.value));
    if (x < canvas.left || x > canvas.right) continue;
    ImGui::GetWindowDrawList()->AddRectFilled({x, top + ImGui::GetTextLineHeight()},
                                              {x + 1, bottom}, ui.ink(ui.theme.grid));
    draw_text(ui, {x + ui.units(3), top}, tick.label, ui.ink(ui.theme.quiet));
  }
}

void draw_wide(Ui& ui, const Canvas& canvas, const Span& span, float top, float bottom) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const std::string shade = sim::shade(span.paint, span.chunk, ui.theme.ground);
  const float from = std::max(canvas.left, canvas.x(span.active));
  const float to = std::min(canvas.right, canvas.x(span.end));
  if (to <= from) return;
  const float seam = to - from > ui.units(4) ? ui.units(0.7F) : 0;
  list.AddRectFilled({from, top}, {to - seam, bottom}, ui.ink(shade));
  if (span.microbatch < 0 || bottom - top < ImGui::GetTextLineHeight()) return;
  const std::string number = fmt::format("{}", span.microbatch);
  const float width = ImGui::CalcTextSize(number.c_str()).x;
  if (to - from < width + ui.units(6)) return;
  draw_text(ui, {(from + to) / 2, (top + bottom - ImGui::GetTextLineHeight()) / 2}, number,
            ui.ink(sim::ink_on(shade)), 0.5F);
}

/// Spans that are wide enough as blocks, the others as columns as dense as they are busy.
void draw_lane(Ui& ui, const Canvas& canvas, const Lane& lane, float top, float bottom) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({canvas.left, top}, {canvas.right, bottom}, ui.ink(ui.theme.raised, 0.5F));
  std::vector<Span> narrow;
  for (const Span& span : spans_in(lane.spans, canvas.range)) {
    if (span.active > span.start && canvas.pixels(span.active - span.start) >= kLeastSpan) {
      // Waiting is no work: an outline.
      list.AddRect({std::max(canvas.left, canvas.x(span.start)), top},
                   {std::min(canvas.right, canvas.x(span.active)), bottom},
                   ui.ink(ui.theme.border));
    }
    if (canvas.pixels(span.end - span.active) >= kLeastSpan) {
      draw_wide(ui, canvas, span, top, bottom);
    } else {
      narrow.push_back(span);
    }
  }
  const auto columns = static_cast<std::size_t>(std::max(0.0F, canvas.right - canvas.left));
  const std::vector<Coverage> covered = coverage(narrow, canvas.range, columns);
  for (std::size_t c = 0; c < covered.size(); ++c) {
    if (covered[c].share <= 0) continue;
    const float x = canvas.left + static_cast<float>(c);
    list.AddRectFilled({x, top}, {x + 1, bottom},
                       ui.ink(ui.theme.of(covered[c].paint), covered[c].share));
  }
}

void draw_exposed(Ui& ui, const Canvas& canvas, const std::vector<Exposed>& exposed, float top) {
  for (const Exposed& each : exposed) {
    if (each.to <= canvas.range.from || each.from >= canvas.range.to) continue;
    const float from = std::max(canvas.left, canvas.x(each.from));
    const float to = std::min(canvas.right, std::max(canvas.x(each.to), from + ui.units(0.6F)));
    ImGui::GetWindowDrawList()->AddRectFilled({from, top}, {to, top + ui.units(kStrip)},
                                              ui.ink(ui.theme.bad, 0.8F));
  }
}

void hover(const Canvas& canvas, const Lane& lane, float top, float bottom) {
  if (!ImGui::IsWindowHovered() ||
      !ImGui::IsMouseHoveringRect({canvas.left, top}, {canvas.right, bottom})) {
    return;
  }
  const double share = (ImGui::GetMousePos().x - canvas.left) / (canvas.right - canvas.left);
  const double time = canvas.range.from + share * canvas.range.length();
  const double pixel = canvas.range.length() / (canvas.right - canvas.left);
  for (const Span& span : spans_in(lane.spans, {time - pixel, time + pixel})) {
    ImGui::SetTooltip("%s, %s", lane.label.c_str(), span_text(span).c_str());
    return;
  }
}

/// Zooms and moves by mouse as docs/viewer.md says.
void navigate(Ui& ui, const Canvas& canvas) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!ImGui::IsWindowHovered()) return;
  const double share =
      std::clamp((io.MousePos.x - canvas.left) / (canvas.right - canvas.left), 0.0F, 1.0F);
  if (io.MouseWheel != 0 && io.KeyCtrl) {
    ui.want(fmt::format("timeline.zoom {} {}", std::pow(0.8, io.MouseWheel), share));
  } else if (io.MouseWheel != 0 && io.KeyShift) {
    ui.want(fmt::format("timeline.pan {}", -0.1 * io.MouseWheel));
  }
  const bool panning = ImGui::IsMouseDragging(ImGuiMouseButton_Right, 0) ||
                       (io.KeyShift && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0));
  if (panning && io.MouseDelta.x != 0) {
    ui.want(fmt::format("timeline.pan {}", -io.MouseDelta.x / (canvas.right - canvas.left)));
  }
}

/// How lanes share a height.
struct Heights {
  float tall = 0;
  float flat = 0;  // 0: the other streams are left out
};

Heights heights_of(Ui& ui, const StepLanes& step, const LaneBeside& beside, float room) {
  const auto stages = static_cast<float>(step.exposed.size());
  const auto told = std::ranges::count_if(
      step.lanes, [&](const Lane& lane) { return ui.state.all_lanes || is_told(step, lane); });
  const auto others = static_cast<float>(told) - stages;
  for (const float share : {1.0F, 0.8F, 0.6F, 0.45F}) {
    const Heights heights{ui.units(kTallLane * share), ui.units(kFlatLane * share)};
    const float whole =
        stages * (heights.tall + ui.units(kStrip + kStages) + beside.lane + beside.strip) +
        others * (heights.flat + ui.units(kBetween) + beside.lane);
    if (whole <= room) return heights;
  }
  const float alone = (room - stages * ui.units(kStrip + 3)) / stages - beside.lane - beside.strip;
  return {std::clamp(alone, ui.units(6), ui.units(kTallLane)), 0};
}

void draw_legend(Ui& ui, const StepLanes& step) {
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (std::size_t p = 0; p < step.paints.size(); ++p) {
    if (step.paints[p])
      entries.emplace_back(sim::kPaints[p].name, ui.theme.of(static_cast<sim::Paint>(p)));
  }
  entries.emplace_back("exposed communication", ui.theme.bad);
  legend(ui, entries);
}

}  // namespace

void draw_timeline(Ui& ui) {
  const StepLanes* const step = ui.state.lanes.get();
  if (step == nullptr) {
    heading(ui, "One step");
    text(ui, "simulating …", ui.theme.quiet);
    return;
  }
  heading(ui, "One step",
          step->simulated ? fmt::format("simulated, {}, {}", format_seconds(Seconds(step->length)),
                                        ui.state.all_lanes ? "all streams" : "busy streams (L)")
                          : step->problem);
  if (!step->simulated) return;
  draw_legend(ui, *step);
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const Canvas canvas{begin.x + ui.units(kLabels), begin.x + room.x, ui.state.range};
  if (canvas.right - canvas.left < ui.units(60)) return;
  const float axis = ImGui::GetTextLineHeight() + ui.units(4);
  const LaneBeside beside = lane_beside(ui);
  const Heights heights = heights_of(ui, *step, beside, room.y - axis);
  draw_ticks(ui, canvas, step->length, begin.y, begin.y + room.y);
  float y = begin.y + axis;
  std::size_t stage = 0;
  for (std::size_t i = 0; i < step->lanes.size(); ++i) {
    const Lane& lane = step->lanes[i];
    const bool computes = lane.stream == Stream::compute;
    if (computes && i > 0) y += heights.flat > 0 ? ui.units(kStages) : ui.units(3);
    if (!computes && (heights.flat <= 0 || !(ui.state.all_lanes || is_told(*step, lane)))) continue;
    const float height = computes ? heights.tall : heights.flat;
    const float middle = y + (height - ImGui::GetTextLineHeight()) / 2;
    if (computes || height >= ui.units(kFlatLane * 0.7F)) {
      draw_text(ui, {canvas.left - ui.units(8), middle}, lane.label,
                ui.ink(computes ? ui.theme.text : ui.theme.quiet), 1);
    }
    draw_lane(ui, canvas, lane, y, y + height);
    hover(canvas, lane, y, y + height);
    ui.probes.put(fmt::format("timeline.{}.{}", lane.stage, name_of(lane.stream)), {canvas.left, y},
                  {canvas.right, y + height});
    y += height;
    if (computes) {
      draw_exposed(ui, canvas, step->exposed[stage++], y + ui.units(1));
      y += ui.units(kStrip);
    }
    draw_measured_lane(ui, beside, lane, canvas.left, canvas.right, y + ui.units(1));
    y += beside.height(lane);
    y += heights.flat > 0 ? ui.units(kBetween) : 0;
  }
  ImGui::Dummy({room.x, y - begin.y});
  ui.probes.put("timeline.canvas", {canvas.left, begin.y}, {canvas.right, y});
  navigate(ui, canvas);
}

}  // namespace shardwise::view
