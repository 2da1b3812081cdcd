#include <fmt/format.h>
#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/compare/compare_model.h"
#include "gui/models/explore/explore_model.h"
#include "gui/models/question/layout_text.h"
#include "gui/models/question/what_if_model.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kFarMemory = 1.6;  // of what fits: dots beyond are out of the frame
constexpr double kSlowest = 2.2;    // of the fastest time: what is drawn until people zoom out
constexpr float kTimeLabels = 70;   // pixels left of the plot
constexpr float kFarClick = 4;      // pixels: a press that moves further draws a box
double gib(Bytes bytes) { return static_cast<double>(bytes.value()) / kGiB; }

/// What is drawn until people zoom.
struct PlotFrame {
  double left = 0;    // GiB
  double right = 0;   // GiB
  double bottom = 0;  // seconds
  double top = 0;     // seconds
  bool operator==(const PlotFrame&) const = default;
};

/// The rows that are shown without those far beyond what fits or far slower than others, and the
/// selected one wherever it is, with the place that a drag moved it from.
PlotFrame frame_of(const AppState& state, const TradeCloud& cloud) {
  const bool log = state.exploring.log_axes;
  // The line of what is usable moves in the frame, and the frame with none of its places.
  const Bytes whole = state.plan.cluster.gpu.hbm_bytes;
  const double far = kFarMemory * (cloud.fit ? gib(whole) : std::max(gib(whole), cloud.smallest));
  TradeCloud seen;
  seen.include(cloud.smallest, cloud.fastest);
  seen.include(std::min(cloud.largest, std::max(far, cloud.smallest)),
               log ? cloud.slowest : std::min(cloud.slowest, kSlowest * cloud.fastest));
  if (state.selected < state.answer.rows.size()) {
    const LayoutRow& row = state.answer.rows[state.selected];
    seen.include(gib(row.memory), row.time.value());
    if (state.exploring.ghost) {
      const StepReport& before = state.exploring.ghost->numbers.estimated;
      seen.include(gib(before.verdict.point), before.step_time.value());
    }
  }
  const Bytes largest(static_cast<std::int64_t>(seen.largest * kGiB));
  seen.largest = gib(sim::memory_axis(largest, whole));
  return {log ? 0.9 * std::min(seen.smallest, gib(whole)) : 0, 1.06 * seen.largest,
          0.94 * seen.fastest, 1.04 * seen.slowest};
}

/// Whether the frame is another than the last one's of this plot: zooms end there.
bool moved(const PlotFrame& frame) {
  ImGuiStorage& storage = *ImGui::GetStateStorage();
  const std::array<double, 4> now = {frame.left, frame.right, frame.bottom, frame.top};
  bool moved = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const ImGuiID id = ImGui::GetID(static_cast<int>(i));
    const auto value = static_cast<float>(now[i]);
    moved = moved || storage.GetFloat(id, -1) != value;
    storage.SetFloat(id, value);
  }
  return moved;
}

/// What the last frame drew of the plot that is being set up.
ImPlotRect drawn_before() {
  const ImPlotPlot& plot = *ImPlot::GetCurrentPlot();
  const ImPlotRange& x = plot.Axes[ImAxis_X1].Range;
  const ImPlotRange& y = plot.Axes[ImAxis_Y1].Range;
  return {x.Min, x.Max, y.Min, y.Max};
}

/// \param room  for the whole plot
void set_up(Ui& ui, const TradeCloud& cloud, ImVec2 room) {
  const bool log = ui.state.exploring.log_axes;
  const PlotFrame frame = frame_of(ui.state, cloud);
  const bool fresh = moved(frame);
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  const bool settled = ui.state.current() && ui.state.answer.exact;
  const ImPlotCond when = settled && !fresh ? ImPlotCond_Once : ImPlotCond_Always;
  ImPlot::SetupAxesLimits(frame.left, frame.right, frame.bottom, frame.top, when);
  if (log) {
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  }
  // Marks are of what is drawn: people zoom and drag.
  const ImPlotRect drawn = when == ImPlotCond_Always
                               ? ImPlotRect(frame.left, frame.right, frame.bottom, frame.top)
                               : drawn_before();
  const Bytes least(static_cast<std::int64_t>(std::max(0.0, drawn.X.Min) * kGiB));
  const Bytes most(static_cast<std::int64_t>(std::max(0.0, drawn.X.Max) * kGiB));
  const Seconds fastest(std::max(0.0, drawn.Y.Min));
  const Seconds slowest(std::max(0.0, drawn.Y.Max));
  if (least < most && fastest < slowest) {
    const float label = ImGui::CalcTextSize("100 GiB").x + ui.units(10);
    const double across = sim::parts_within(room.x - ui.units(kTimeLabels), label);
    const double up = sim::parts_within(room.y, 1.3 * ImGui::GetTextLineHeight());
    const bool logs = log && least > Bytes(0) && fastest > Seconds(0);
    set_ticks(
        ImAxis_X1,
        logs ? sim::log_memory_ticks(least, most) : sim::memory_ticks_between(least, most, across),
        kGiB);
    set_ticks(ImAxis_Y1,
              logs ? sim::log_time_ticks(fastest, slowest)
                   : sim::time_ticks_between(fastest, slowest, slowest - fastest, slowest, up));
  }
  ImPlot::SetupFinish();
}

void plot_dots(Ui& ui, const char* name, const TradeDots& dots, std::string_view hex, float size) {
  if (dots.gib.empty()) return;
  // Many dots lie on one another: small and pale ones still show where they are dense.
  constexpr std::size_t kMany = 1500;
  const bool many = dots.gib.size() > kMany;
  if (many) size *= 0.62F;
  const ImVec4 fill = colour4(hex, many ? 0.4F : 0.85F);
  ImPlotSpec spec;
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = ui.units(size);
  spec.MarkerFillColor = fill;
  spec.MarkerLineColor = ImVec4(0, 0, 0, 0);
  spec.LineWeight = 0;
  ImPlot::PlotScatter(name, dots.gib.data(), dots.seconds.data(), static_cast<int>(dots.gib.size()),
                      spec);
}

void plot_front(Ui& ui) {
  const TradeDots& front = ui.state.cloud.front;
  if (front.gib.size() < 2) return;
  ImPlotSpec spec;
  spec.LineColor = colour4(ui.theme.text);
  spec.LineWeight = ui.units(1.6F);
  ImPlot::PlotStairs("front", front.gib.data(), front.seconds.data(),
                     static_cast<int>(front.gib.size()), spec);
}

/// Words on a ground of their own, so that dots below do not make them hard to read.
void draw_label(Ui& ui, ImVec2 at, const std::string& words, std::string_view hex) {
  const ImVec2 size = ImGui::CalcTextSize(words.c_str());
  const float edge = ui.units(3);
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  list.AddRectFilled({at.x - edge, at.y}, {at.x + size.x + edge, at.y + size.y},
                     ui.ink(ui.theme.panel, 0.85F), ui.units(3));
  list.AddText({std::floor(at.x), std::floor(at.y)}, ui.ink(hex), words.c_str());
}

/// What is right of the line does not fit. Dragging it holds memory back. \returns it is dragged
bool draw_limit(Ui& ui) {
  double usable = gib(ui.state.answer.usable);
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  if (usable > limits.X.Max) return false;
  const ImVec2 top = ImPlot::PlotToPixels(usable, limits.Y.Max);
  const ImVec2 bottom = ImPlot::PlotToPixels(limits.X.Max, limits.Y.Min);
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddRectFilled(top, bottom, ui.ink(ui.theme.bad, 0.10F));
  ImPlot::PopPlotClipRect();
  bool held = false;
  if (ImPlot::DragLineX(0, &usable, colour4(ui.theme.bad), ui.units(1.5F),
                        ImPlotDragToolFlags_NoFit, nullptr, nullptr, &held)) {
    const Bytes at(static_cast<std::int64_t>(std::max(0.0, usable) * kGiB));
    ui.want(fmt::format("question.set held_back {}", held_back_at(ui.state.plan.cluster, at)));
  }
  ui.probes.put("trade.limit", {top.x, top.y}, {top.x + ui.units(1.5F), bottom.y});
  return held;
}

void draw_limit_label(Ui& ui) {
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const ImVec2 top = ImPlot::PlotToPixels(gib(ui.state.answer.usable), limits.Y.Max);
  const bool beyond = gib(ui.state.answer.usable) > limits.X.Max;
  std::string label = fmt::format("usable {}{}", format_bytes(ui.state.answer.usable),
                                  beyond ? ", far to the right" : "");
  const float left = ImPlot::GetPlotPos().x;
  const float right = left + ImPlot::GetPlotSize().x;
  float width = ImGui::CalcTextSize(label.c_str()).x + ui.units(7);
  if (top.x + width >= right && std::min(top.x, right) - width < left) {
    label = format_bytes(ui.state.answer.usable);
    width = ImGui::CalcTextSize(label.c_str()).x + ui.units(7);
  }
  const bool room = top.x + width < right;
  const float end = std::min(top.x, right);
  ImPlot::PushPlotClipRect();
  draw_label(ui, {room ? top.x + ui.units(7) : end - width, top.y + ui.units(4)}, label,
             ui.theme.bad);
  ImPlot::PopPlotClipRect();
}

void draw_selected_dot(Ui& ui) {
  const ImVec2 radius(ui.units(7), ui.units(7));
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  if (ui.state.selected < ui.state.answer.rows.size()) {
    const LayoutRow& row = ui.state.answer.rows[ui.state.selected];
    const ImVec2 at = ImPlot::PlotToPixels(gib(row.memory), row.time.value());
    if (ui.state.exploring.ghost) {
      const StepReport& before = ui.state.exploring.ghost->numbers.estimated;
      const ImVec2 from = ImPlot::PlotToPixels(gib(before.verdict.point), before.step_time.value());
      list.AddLine(from, at, ui.ink(ui.theme.text, 0.5F), ui.units(1));
      list.AddCircleFilled(from, ui.units(5), ui.ink(ui.theme.panel, 0.8F));
      list.AddCircle(from, ui.units(5), ui.ink(ui.theme.quiet), 0, ui.units(1.5F));
      ui.probes.put("trade.ghost", {from.x - radius.x, from.y - radius.y},
                    {from.x + radius.x, from.y + radius.y});
    }
    list.AddCircleFilled(at, ui.units(5),
                         ui.ink(row.fit == Fit::fits      ? ui.theme.accent
                                : row.fit == Fit::at_risk ? ui.theme.warning
                                                          : ui.theme.quiet));
    list.AddCircle(at, radius.x, ui.ink(ui.theme.text), 0, ui.units(2));
    ui.probes.put("trade.selected", {at.x - radius.x, at.y - radius.y},
                  {at.x + radius.x, at.y + radius.y});
  }
  ImPlot::PopPlotClipRect();
}

/// What the plan is compared with, as a square.
void draw_compared_step(Ui& ui) {
  const Compared* const other = ui.state.compare.overlay();
  if (other == nullptr || !other->whole()) return;
  const std::optional<Bytes> peak = peak_beside(ui.state.report, other->report);
  if (!peak) return;
  mark_compared(ui, "trade.compared", gib(*peak), other->report.step_time.value());
}

/// The place among the rows shown of the dot at the pointer, or how many there are.
std::size_t dot_at_pointer(Ui& ui) {
  const ImVec2 mouse = ImGui::GetMousePos();
  const float reach = ui.units(9);
  float nearest = reach * reach;
  std::size_t best = ui.state.shown.size();
  for (std::size_t place = 0; place < ui.state.shown.size(); ++place) {
    const LayoutRow& row = ui.state.answer.rows[ui.state.shown[place]];
    const ImVec2 at = ImPlot::PlotToPixels(gib(row.memory), row.time.value());
    const float distance =
        (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (distance < nearest) {
      nearest = distance;
      best = place;
    }
  }
  return best;
}

/// A dot under the pointer says what it is, and a click selects it.
void hover_dot(Ui& ui, bool clicked) {
  const std::size_t best = dot_at_pointer(ui);
  if (best == ui.state.shown.size()) return;
  const LayoutRow& row = ui.state.answer.rows[ui.state.shown[best]];
  ImGui::SetTooltip("%s\n%s, %s a step", layout_text(row.layout).c_str(),
                    format_bytes(row.memory).c_str(), format_seconds(row.time).c_str());
  if (clicked) ui.want(fmt::format("layout.select {}", best + 1));
}

/// A region that is drawn becomes words of the filter.
void draw_drag_box(Ui& ui, ImVec2 from, ImVec2 to, bool released) {
  ImPlot::PushPlotClipRect();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const ImVec2 least(std::min(from.x, to.x), std::min(from.y, to.y));
  const ImVec2 most(std::max(from.x, to.x), std::max(from.y, to.y));
  list.AddRectFilled(least, most, ui.ink(ui.theme.accent, 0.15F));
  list.AddRect(least, most, ui.ink(ui.theme.accent), 0, ui.units(1));
  ImPlot::PopPlotClipRect();
  if (!released) return;
  const ImPlotPoint low = ImPlot::PixelsToPlot({least.x, most.y});
  const ImPlotPoint high = ImPlot::PixelsToPlot({most.x, least.y});
  ui.want("table.filter " + boxed_filter(ui.state.explore.filter_text,
                                         {std::max(0.0, low.x), high.x, low.y, high.y}));
}

/// What the left button does: selects a dot, or draws a box.
void point(Ui& ui, bool line_held) {
  ImGuiStorage& storage = *ImGui::GetStateStorage();
  const ImGuiID moving = ImGui::GetID("line");
  const bool released = ImGui::IsMouseReleased(ImGuiMouseButton_Left);
  const bool line = line_held || (released && storage.GetBool(moving));
  storage.SetBool(moving, line_held);
  if (line || !(ImPlot::IsPlotHovered() || ImGui::IsMouseDown(ImGuiMouseButton_Left))) return;
  const ImVec2 from = ImGui::GetIO().MouseClickedPos[ImGuiMouseButton_Left];
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  const bool began_here = from.x >= least.x && from.x <= least.x + size.x && from.y >= least.y &&
                          from.y <= least.y + size.y && ImGui::IsWindowHovered();
  const bool far =
      ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] > kFarClick * kFarClick;
  const bool pressed = ImGui::IsMouseDown(ImGuiMouseButton_Left) || released;
  if (pressed && began_here && far) return draw_drag_box(ui, from, ImGui::GetMousePos(), released);
  if (ImPlot::IsPlotHovered()) hover_dot(ui, released && began_here);
}

}  // namespace

void draw_trade(Ui& ui) {
  const float width = segments_width(ui, {"log"});
  const bool bounds = ui.state.current() && !ui.state.answer.exact;
  heading(ui, "Memory and time",
          bounds ? known_text(ui.state.answer, true)
                 : "peak of the fullest GPU, time by the step-time model",
          width);
  to_right_edge(ui, width);
  if (segments(ui, "trade", {"log"}, ui.state.exploring.log_axes ? 0 : -1) == 0) {
    ui.want("trade.log");
  }
  if (ui.state.shown.empty()) {
    text(ui, ui.state.current() ? "no rows are shown" : "searching …", ui.theme.quiet);
    return;
  }
  const TradeCloud& cloud = ui.state.cloud;
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame | ImPlotFlags_NoBoxSelect;
  // Another question's dots lie elsewhere, and on other axes: people zoom in one of them.
  const std::string name =
      fmt::format("##{}{}", ui.state.exploring.log_axes ? "log" : "plain", ui.state.asked);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (!ImPlot::BeginPlot(name.c_str(), {-1, -1}, flags)) return;
  set_up(ui, cloud, room);
  plot_dots(ui, "over", cloud.over, ui.theme.quiet, 2.2F);
  plot_dots(ui, "risk", cloud.risk, ui.theme.warning, 2.4F);
  plot_dots(ui, "fits", cloud.fits, ui.theme.accent, 2.6F);
  const bool held = draw_limit(ui);
  plot_front(ui);
  draw_selected_dot(ui);
  draw_compared_step(ui);
  draw_limit_label(ui);
  point(ui, held);
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ui.probes.put("trade.plot", least, {least.x + size.x, least.y + size.y});
  ImPlot::EndPlot();
}

}  // namespace shardwise::view
