#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/timeline/timeline_model.h"
#include "gui/panels/measured_lane.h"
#include "gui/panels/panels.h"
#include "gui/panels/timeline_drawing.h"
#include "gui/panels/timeline_heading.h"
#include "gui/panels/timeline_input.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

constexpr float kTallLane = 30;
constexpr float kFlatLane = 12;
constexpr float kExposedStrip = 6;  // of exposed time, below a stage's compute
constexpr float kLaneGap = 3;       // lanes
constexpr float kStages = 10;       // between stages
constexpr float kLetters = 15;
constexpr float kMap = 12;  // of the whole step, above the lanes
constexpr float kRoomForMap = 110;

/// How lanes share a height.
struct Heights {
  float tall = 0;
  float flat = 0;  // 0: the other streams are left out
};

/// A lane with its place among all, before it is drawn.
struct Placed {
  std::size_t number = 0;  // of the step's lanes
  float top = 0;
  float height = 0;
};

/// Where what is drawn lies, and what was.
struct Picture {
  Canvas canvas;              // of all parts
  std::vector<Canvas> parts;  // of the step: one, or its begin, middle and end
  LaneField field;
  std::vector<DrawnLane> lanes;

  const DrawnLane* find(const LaneName& name) const {
    const auto found =
        std::ranges::find(lanes, name, [](const DrawnLane& each) { return name_of(*each.lane); });
    return found == lanes.end() ? nullptr : &*found;
  }
};

/// Which lanes are shown besides those that compute.
enum class Told : std::uint8_t { pinned, all, busy, exposed };

/// The lanes that are shown, in their order.
std::vector<std::size_t> shown_lanes(const Ui& ui, const StepLanes& step, Told told) {
  const TimelineView& view = ui.state.timeline;
  const auto is_shown = [&](const Lane& lane) {
    if (told == Told::exposed) return lane.stream == Stream::compute || is_exposed(step, lane);
    return told != Told::busy || is_told(step, lane);
  };
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < step.lanes.size(); ++i) {
    const bool pinned = view.pinned.contains(name_of(step.lanes[i]));
    if (pinned != (told == Told::pinned)) continue;
    if (is_shown(step.lanes[i])) shown.push_back(i);
  }
  if (view.by_stream) {
    std::ranges::stable_sort(shown, {}, [&](std::size_t i) { return step.lanes[i].stream; });
  }
  return shown;
}

/// How they share `room`. With no height for others where all together have none, unless they
/// scroll.
Heights heights_of(Ui& ui, const StepLanes& step, std::size_t lanes, const LaneBeside& beside,
                   float room, bool scroll) {
  const auto stages = static_cast<float>(step.exposed.size());
  const auto others = std::max(0.0F, static_cast<float>(lanes) - stages);
  Heights heights;
  for (const float share : {2.2F, 1.8F, 1.4F, 1.2F, 1.0F, 0.8F, 0.65F}) {
    heights = {ui.units(kTallLane * share), ui.units(kFlatLane * share)};
    const float whole =
        stages * (heights.tall + ui.units(kExposedStrip + kStages) + beside.lane + beside.strip) +
        others * (heights.flat + ui.units(kLaneGap) + beside.lane);
    if (whole <= room) return heights;
  }
  if (scroll) return heights;
  const float alone =
      (room - stages * ui.units(kExposedStrip + 3)) / stages - beside.lane - beside.strip;
  return {std::clamp(alone, ui.units(6), ui.units(kTallLane)), 0};
}

/// Lanes below one another. \returns where the last ends
float place_lanes(Ui& ui, const StepLanes& step, const std::vector<std::size_t>& shown,
                  Heights heights, const LaneBeside& beside, float y, std::vector<Placed>& placed) {
  bool first = true;
  for (const std::size_t i : shown) {
    const bool computes = step.lanes[i].stream == Stream::compute;
    if (!computes && heights.flat <= 0) continue;
    if (computes && !first) y += heights.flat > 0 ? ui.units(kStages) : ui.units(3);
    first = false;
    const float height = computes ? heights.tall : heights.flat;
    placed.push_back({i, y, height});
    y += height + (computes ? ui.units(kExposedStrip) : 0) + beside.height(step.lanes[i]) +
         (heights.flat > 0 ? ui.units(kLaneGap) : 0);
  }
  return y;
}

void draw_placed(Ui& ui, const StepLanes& step, const LaneInk& ink, const LaneBeside& beside,
                 const Placed& at, float shift, Picture& picture) {
  const Lane& lane = step.lanes[at.number];
  const bool computes = lane.stream == Stream::compute;
  const float top = at.top + shift;
  const float bottom = top + at.height;
  if (bottom < picture.field.top || top > picture.field.bottom) return;
  // Letters of a low lane are as high as it and the gap below.
  const float letters = (at.height + ui.units(kLaneGap)) / ui.scale;
  const bool small = !computes && letters < kLetters;
  if (small) ImGui::PushFont(nullptr, letters);
  const float middle = top + (at.height - ImGui::GetTextLineHeight()) / 2;
  const std::string name = lane_label(ui, lane);
  draw_text(ui, {picture.canvas.left - ui.units(8), middle}, name,
            ui.ink(computes ? ui.theme.text : ui.theme.quiet), 1);
  if (small) ImGui::PopFont();
  for (std::size_t p = 0; p < picture.parts.size(); ++p) {
    const Canvas& part = picture.parts[p];
    ui.columns.begin(ui.state.kept_step(), ink.by(), part.range, part.width(), p);
    draw_lane(ui, part, ink, lane, top, bottom);
    if (ui.state.timeline.path_shown && at.number < step.path.size()) {
      underline(ui, part, lane, step.path[at.number], bottom);
    }
  }
  ui.probes.put("timeline." + text_of(name_of(lane)), {picture.canvas.left, top},
                {picture.canvas.right, bottom});
  picture.lanes.push_back({&lane, top, bottom});
  draw_measured_lane(ui, beside, lane, picture.canvas.left, picture.canvas.right,
                     bottom + (computes ? ui.units(kExposedStrip) : 0) + ui.units(1));
  if (!computes || lane.stage >= step.exposed.size()) return;
  for (const Canvas& part : picture.parts) {
    draw_exposed(ui, part, step.exposed[lane.stage], bottom + ui.units(1),
                 bottom + ui.units(kExposedStrip));
  }
  ui.probes.put(fmt::format("timeline.{}.exposed", lane.stage),
                {picture.canvas.left, bottom + ui.units(1)},
                {picture.canvas.right, bottom + ui.units(kExposedStrip)});
}

void draw_line(Ui& ui, const Picture& picture, double seconds, std::string_view hex,
               const std::string& words) {
  const float x = std::floor(picture.canvas.x(seconds));
  if (x < picture.canvas.left || x > picture.canvas.right) return;
  ImGui::GetWindowDrawList()->AddRectFilled({x, picture.field.top},
                                            {x + ui.units(1), picture.field.bottom}, ui.ink(hex));
  draw_text(ui, {x + ui.units(3), picture.field.bottom - ImGui::GetTextLineHeight()}, words,
            ui.ink(hex));
}

/// Outline of a span, and where its active time begins and ends.
struct Outline {
  ImVec2 least;
  ImVec2 most;
  bool found = false;
};
Outline outline_of(const Picture& picture, const ChosenSpan& span) {
  const DrawnLane* const drawn = picture.find(span.lane);
  if (drawn == nullptr || span.span >= drawn->lane->spans.size()) return {};
  const float from = picture.canvas.x(drawn->lane->spans.active_start[span.span]);
  const float to = picture.canvas.x(drawn->lane->spans.end[span.span]);
  return {{from, drawn->top}, {std::max(to, from + 2), drawn->bottom}, true};
}

void draw_chosen(Ui& ui, const Picture& picture) {
  const TimelineView& view = ui.state.timeline;
  if (!view.chosen) return;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const Outline chosen = outline_of(picture, *view.chosen);
  if (!chosen.found) return;
  for (const ChosenSpan& each : view.waited) {
    const Outline before = outline_of(picture, each);
    if (!before.found) continue;
    const bool last = each == view.waited.front();
    const ImU32 ink = ui.ink(last ? ui.theme.accent : ui.theme.quiet, last ? 1.0F : 0.6F);
    list.AddRect(before.least, before.most, ink);
    const ImVec2 from(before.most.x, (before.least.y + before.most.y) / 2);
    const ImVec2 to(chosen.least.x, (chosen.least.y + chosen.most.y) / 2);
    list.AddLine(from, to, ink, ui.units(last ? 2.0F : 1.0F));
    list.AddTriangleFilled({to.x - ui.units(6), to.y - ui.units(3)}, to,
                           {to.x - ui.units(6), to.y + ui.units(3)}, ink);
  }
  list.AddRect(chosen.least, chosen.most, ui.ink(ui.theme.text), 0, ui.units(2));
  ui.probes.put("timeline.chosen", chosen.least, chosen.most);
}

void draw_overlays(Ui& ui, const StepLanes& step, const Picture& picture) {
  const TimelineView& view = ui.state.timeline;
  if (view.measured) {
    const float from = std::clamp(picture.canvas.x(view.measured->from), picture.canvas.left,
                                  picture.canvas.right);
    const float to =
        std::clamp(picture.canvas.x(view.measured->to), picture.canvas.left, picture.canvas.right);
    ImGui::GetWindowDrawList()->AddRectFilled({from, picture.field.top}, {to, picture.field.bottom},
                                              ui.ink(ui.theme.accent, 0.14F));
    ui.probes.put("timeline.measured", {from, picture.field.top}, {to, picture.field.bottom});
  }
  for (const double mark : view.marks) {
    draw_line(ui, picture, mark, ui.theme.warning,
              sim::moment_text(Seconds(mark), Seconds(picture.canvas.range.length() / 10)));
  }
  if (&step != ui.state.lanes.get() && ui.state.lanes) {
    draw_line(ui, picture, ui.state.lanes->length, ui.theme.accent, "as planned");
  }
  draw_chosen(ui, picture);
}

/// Which part of the lanes is in sight, right of them.
void draw_scroll(Ui& ui, const LaneField& field, float right) {
  if (field.most_scroll <= 0) return;
  const float shown = field.bottom - field.top;
  const float whole = shown + ui.units(field.most_scroll);
  const float top = field.top + shown * ui.units(field.scroll) / whole;
  const float bottom = top + shown * shown / whole;
  const float left = right + ui.units(2);
  const float end = left + ui.units(4);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({left, field.top}, {end, field.bottom}, ui.ink(ui.theme.raised), ui.units(2));
  list.AddRectFilled({left, top}, {end, bottom}, ui.ink(ui.theme.hovered), ui.units(2));
  ui.probes.put("timeline.scroll", {left, top}, {end, bottom});
}

/// The whole step, or its begin, middle and end where that has no room for passes.
std::vector<Canvas> parts_of(Ui& ui, const StepLanes& step, const Canvas& canvas,
                             const LaneBeside& beside) {
  const bool whole = canvas.range.length() >= (1 - 1e-9) * step.length;
  // Measured lanes have one axis.
  if (!whole || ui.state.timeline.uncut || beside.lane > 0) return {canvas};
  const std::vector<DrawnPart> drawn =
      drawn_parts(step, canvas.width() / static_cast<double>(ui.scale));
  if (drawn.size() == 1) return {canvas};
  std::vector<Canvas> parts;
  for (const DrawnPart& each : drawn) {
    parts.push_back({std::floor(canvas.left + ui.units(static_cast<float>(each.left))),
                     std::floor(canvas.left + ui.units(static_cast<float>(each.right))),
                     each.range});
  }
  return parts;
}

/// What is left out between two parts.
void draw_cuts(Ui& ui, const Picture& picture, float top) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (std::size_t p = 1; p < picture.parts.size(); ++p) {
    const float left = picture.parts[p - 1].right;
    const float right = picture.parts[p].left;
    const float middle = (left + right) / 2;
    for (const float at : {middle - ui.units(2), middle + ui.units(2)}) {
      list.AddLine({at, top}, {at, picture.field.bottom}, ui.ink(ui.theme.border));
    }
    ui.probes.put(fmt::format("timeline.cut.{}", p), {left, top}, {right, picture.field.bottom});
    if (!ImGui::IsMouseHoveringRect({left, top}, {right, picture.field.bottom})) continue;
    const double from = picture.parts[p - 1].range.to;
    const double to = picture.parts[p].range.from;
    ImGui::SetTooltip("%s are left out here: zoom in, or Ctrl+Shift+G",
                      format_seconds(Seconds(to - from)).c_str());
  }
}

/// The whole step of the first stage, with what is shown of it; a press goes there.
void draw_map(Ui& ui, const StepLanes& step, const LaneInk& ink, const Picture& picture, float top,
              float bottom) {
  if (step.lanes.empty() || step.length <= 0) return;
  const Canvas whole{picture.canvas.left, picture.canvas.right, {0, step.length}};
  ui.columns.begin(ui.state.kept_step(), ink.by(), whole.range, whole.width(),
                   picture.parts.size());
  draw_lane(ui, whole, ink, step.lanes.front(), top, bottom);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  float dim = whole.left;
  const auto dim_until = [&](float x) {
    if (x > dim) list.AddRectFilled({dim, top}, {x, bottom}, ui.ink(ui.theme.page, 0.65F));
  };
  for (const Canvas& part : picture.parts) {
    const float from = std::max(whole.left, std::floor(whole.x(part.range.from)));
    const float to = std::min(whole.right, std::max(from + 2, std::ceil(whole.x(part.range.to))));
    dim_until(from);
    dim = to;
    list.AddRect({from, top - 1}, {to, bottom + 1}, ui.ink(ui.theme.accent));
  }
  dim_until(whole.right);
  ui.probes.put("timeline.map", {whole.left, top}, {whole.right, bottom});
  const ImGuiIO& io = ImGui::GetIO();
  const ImVec2 pressed = io.MouseClickedPos[ImGuiMouseButton_Left];
  const bool taken = ImGui::IsWindowHovered() && ImGui::IsMouseDown(ImGuiMouseButton_Left) &&
                     pressed.x >= whole.left && pressed.x < whole.right && pressed.y >= top &&
                     pressed.y < bottom;
  if (!taken) return;
  const double length = std::min(picture.parts.front().range.length(), 0.5 * step.length);
  const double from =
      std::clamp(whole.seconds(io.MousePos.x) - length / 2, 0.0, step.length - length);
  ui.want(fmt::format("timeline.show {} {}", from, from + length));
}

}  // namespace

void draw_timeline(Ui& ui) {
  const StepLanes* const step = ui.state.shown_step();
  if (step == nullptr) {
    heading(ui, "One step");
    text(ui, "simulating …", ui.theme.quiet);
    return;
  }
  draw_step_heading(ui, *step);
  if (!step->simulated) return;
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  Picture picture;
  picture.canvas = {std::floor(begin.x + lane_labels_width(ui, step->lanes)),
                    std::floor(begin.x + room.x), ui.state.range};
  if (picture.canvas.width() < ui.units(60)) return;
  const LaneBeside beside = lane_beside(ui);
  picture.parts = parts_of(ui, *step, picture.canvas, beside);
  const bool cut = picture.parts.size() > 1;
  const bool mapped =
      room.y >= ui.units(kRoomForMap) && (cut || ui.state.workspace == Workspace::timeline);
  const float map = mapped ? ui.units(kMap + 4) : 0;
  const float axis = map + ImGui::GetTextLineHeight() + ui.units(4);
  const float bottom = begin.y + room.y;

  const std::vector<std::size_t> pinned = shown_lanes(ui, *step, Told::pinned);
  std::vector<std::size_t> others =
      shown_lanes(ui, *step, ui.state.all_lanes ? Told::all : Told::busy);
  const auto heights_with = [&](bool scroll) {
    return heights_of(ui, *step, pinned.size() + others.size(), beside, room.y - axis, scroll);
  };
  Heights heights = heights_with(ui.state.all_lanes);
  if (heights.flat <= 0) {
    // What the exposed strips are about stays, where need be below the edge.
    others = shown_lanes(ui, *step, Told::exposed);
    heights = heights_with(ui.state.workspace == Workspace::timeline);
  }
  std::vector<Placed> placed;
  float y =
      place_lanes(ui, *step, pinned, {heights.tall, std::max(heights.flat, ui.units(kFlatLane))},
                  beside, begin.y + axis, placed);
  const std::size_t fixed = placed.size();
  if (fixed > 0) y += ui.units(kStages);
  const float end = place_lanes(ui, *step, others, heights, beside, y, placed);

  picture.field.most_scroll = std::max(0.0F, end - bottom) / ui.scale;
  picture.field.scroll =
      std::clamp(static_cast<float>(ui.state.timeline.scroll), 0.0F, picture.field.most_scroll);
  picture.field.bottom = std::min(end, bottom);
  const LaneInk ink(ui, ui.state.timeline.colour);
  for (const Canvas& part : picture.parts) {
    draw_ticks(ui, part, step->length, begin.y + map, picture.field.bottom);
  }
  if (mapped) draw_map(ui, *step, ink, picture, begin.y, begin.y + ui.units(kMap));
  picture.field.top = begin.y + axis;
  for (std::size_t i = 0; i < fixed; ++i)
    draw_placed(ui, *step, ink, beside, placed[i], 0, picture);
  picture.field.top = y;
  // The label of a low lane is higher than the lane.
  const float above = picture.field.scroll > 0 ? 0 : ImGui::GetTextLineHeight() / 2;
  ImGui::PushClipRect({begin.x, y - above}, {begin.x + room.x, bottom}, true);
  for (std::size_t i = fixed; i < placed.size(); ++i) {
    draw_placed(ui, *step, ink, beside, placed[i], -std::floor(ui.units(picture.field.scroll)),
                picture);
  }
  ImGui::PopClipRect();
  draw_scroll(ui, picture.field, picture.canvas.right);
  picture.field.top = begin.y + axis;
  for (const Canvas& part : picture.parts) {
    ImGui::PushClipRect({cut ? part.left : begin.x, begin.y},
                        {cut ? part.right : begin.x + room.x, bottom}, true);
    picture.canvas = part;
    draw_overlays(ui, *step, picture);
    ImGui::PopClipRect();
  }
  picture.canvas.left = picture.parts.front().left;
  picture.canvas.range = ui.state.range;
  draw_cuts(ui, picture, begin.y + map);
  ImGui::Dummy({room.x, picture.field.bottom - begin.y});
  ui.probes.put("timeline.canvas", {picture.canvas.left, begin.y},
                {picture.canvas.right, picture.field.bottom});
  use_mouse(ui, picture.parts, picture.field, picture.lanes, *step);
}

}  // namespace shardwise::view
