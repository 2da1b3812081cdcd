#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/compare_model.h"
#include "gui/models/explore_model.h"
#include "gui/models/summary_model.h"
#include "gui/models/what_if_model.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kSlowest = 2.2;  // of the fastest time: what is drawn until people zoom out
constexpr float kFarClick = 4;    // pixels: a press that moves further draws a box
double gib(Bytes bytes) { return static_cast<double>(bytes.value()) / kGiB; }

/// Dots of one kind.
struct Dots {
  std::vector<double> x;
  std::vector<double> y;
};

/// What all of them are, and where they end.
struct Cloud {
  Dots fits;
  Dots risk;
  Dots over;
  double fastest = INFINITY;
  double slowest = 0;
  double smallest = INFINITY;
  double largest = 0;
};

Cloud cloud_of(const AppState& state) {
  Cloud cloud;
  const double usable = gib(state.answer.usable);
  cloud.largest = usable;
  for (const std::uint32_t i : state.shown) {
    const LayoutRow& row = state.answer.rows[i];
    Dots& dots = row.fit == Fit::fits      ? cloud.fits
                 : row.fit == Fit::at_risk ? cloud.risk
                                           : cloud.over;
    const double memory = gib(row.memory);
    dots.x.push_back(memory);
    dots.y.push_back(row.time.value());
    cloud.fastest = std::min(cloud.fastest, row.time.value());
    cloud.slowest = std::max(cloud.slowest, row.time.value());
    cloud.smallest = std::min(cloud.smallest, memory);
    cloud.largest = std::max(cloud.largest, std::min(memory, 1.6 * usable));
  }
  return cloud;
}

/// 1, 2 and 5 times powers of ten, which a log axis has too few marks without.
void mark_log(ImAxis axis, double least, double most, bool time) {
  std::vector<double> values;
  std::vector<std::string> texts;
  for (double power = std::pow(10, std::floor(std::log10(least))); power <= most; power *= 10) {
    for (const double times : {1.0, 2.0, 5.0}) values.push_back(times * power);
  }
  for (const double value : values) {
    texts.push_back(time ? format_seconds(Seconds(value)) : fmt::format("{:g}", value));
  }
  std::vector<const char*> labels;
  for (const std::string& text : texts) labels.push_back(text.c_str());
  ImPlot::SetupAxisTicks(axis, values.data(), static_cast<int>(values.size()), labels.data());
}

void set_up(Ui& ui, const Cloud& cloud) {
  const bool log = ui.state.exploring.log_axes;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  const double fastest = 0.94 * cloud.fastest;
  const double slowest = std::min(1.04 * cloud.slowest, kSlowest * cloud.fastest);
  const double least = log ? 0.9 * cloud.smallest : 0;
  const bool settled = ui.state.current() && ui.state.answer.exact;
  ImPlot::SetupAxesLimits(least, 1.06 * cloud.largest, fastest,
                          log ? 1.04 * cloud.slowest : slowest,
                          settled ? ImPlotCond_Once : ImPlotCond_Always);
  if (log) {
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    mark_log(ImAxis_X1, cloud.smallest, cloud.largest, false);
    mark_log(ImAxis_Y1, cloud.fastest, cloud.slowest, true);
  } else {
    ImPlot::SetupAxisFormat(ImAxis_X1, "%g");
    ImPlot::SetupAxisFormat(ImAxis_Y1, seconds_label);
  }
  ImPlot::SetupFinish();
}

void plot_dots(Ui& ui, const char* name, const Dots& dots, std::string_view hex, float size) {
  if (dots.x.empty()) return;
  // Many dots lie on one another: small and pale ones still show where they are dense.
  constexpr std::size_t kMany = 1500;
  const bool many = dots.x.size() > kMany;
  if (many) size *= 0.62F;
  const ImVec4 fill = colour4(hex, many ? 0.4F : 0.85F);
  ImPlotSpec spec;
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = ui.units(size);
  spec.MarkerFillColor = fill;
  spec.MarkerLineColor = ImVec4(0, 0, 0, 0);
  spec.LineWeight = 0;
  ImPlot::PlotScatter(name, dots.x.data(), dots.y.data(), static_cast<int>(dots.x.size()), spec);
}

void plot_front(Ui& ui) {
  Dots front;
  for (const std::uint32_t i : front_rows(ui.state.answer)) {
    const LayoutRow& row = ui.state.answer.rows[i];
    front.x.push_back(gib(row.memory));
    front.y.push_back(row.time.value());
  }
  if (front.x.size() < 2) return;
  ImPlotSpec spec;
  spec.LineColor = colour4(ui.theme.text);
  spec.LineWeight = ui.units(1.6F);
  ImPlot::PlotStairs("front", front.x.data(), front.y.data(), static_cast<int>(front.x.size()),
                     spec);
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
  const std::string label = format_bytes(ui.state.answer.usable);
  const float width = ImGui::CalcTextSize(label.c_str()).x + ui.units(7);
  const float right = ImPlot::GetPlotPos().x + ImPlot::GetPlotSize().x;
  const bool room = top.x + width < right;
  ImPlot::PushPlotClipRect();
  draw_label(ui, {room ? top.x + ui.units(7) : top.x - width, top.y + ui.units(4)}, label,
             ui.theme.bad);
  ImPlot::PopPlotClipRect();
}

void draw_selected(Ui& ui) {
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
void draw_compared(Ui& ui) {
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
void hover(Ui& ui, bool clicked) {
  const std::size_t best = dot_at_pointer(ui);
  if (best == ui.state.shown.size()) return;
  const LayoutRow& row = ui.state.answer.rows[ui.state.shown[best]];
  ImGui::SetTooltip("%s\n%s, %s a step", layout_text(row.layout).c_str(),
                    format_bytes(row.memory).c_str(), format_seconds(row.time).c_str());
  if (clicked) ui.want(fmt::format("layout.select {}", best + 1));
}

/// A region that is drawn becomes words of the filter.
void draw_box(Ui& ui, ImVec2 from, ImVec2 to, bool released) {
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
  if (pressed && began_here && far) return draw_box(ui, from, ImGui::GetMousePos(), released);
  if (ImPlot::IsPlotHovered()) hover(ui, released && began_here);
}

}  // namespace

void draw_trade(Ui& ui) {
  const float width = segments_width(ui, {"log"});
  const bool bounds = ui.state.current() && !ui.state.answer.exact;
  heading(ui, "Memory and time",
          bounds ? known_text(ui.state.answer, true) : "GiB on the fullest GPU, time of a step",
          width);
  to_right_edge(ui, width);
  if (segments(ui, "trade", {"log"}, ui.state.exploring.log_axes ? 0 : -1) == 0) {
    ui.want("trade.log");
  }
  if (ui.state.shown.empty()) {
    text(ui, ui.state.current() ? "no rows are shown" : "searching …", ui.theme.quiet);
    return;
  }
  const Cloud cloud = cloud_of(ui.state);
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame | ImPlotFlags_NoBoxSelect;
  // Another question's dots lie elsewhere, and on other axes: people zoom in one of them.
  const std::string name =
      fmt::format("##{}{}", ui.state.exploring.log_axes ? "log" : "plain", ui.state.asked);
  if (!ImPlot::BeginPlot(name.c_str(), {-1, -1}, flags)) return;
  set_up(ui, cloud);
  plot_dots(ui, "over", cloud.over, ui.theme.quiet, 2.2F);
  plot_dots(ui, "risk", cloud.risk, ui.theme.warning, 2.4F);
  plot_dots(ui, "fits", cloud.fits, ui.theme.accent, 2.6F);
  const bool held = draw_limit(ui);
  plot_front(ui);
  draw_selected(ui);
  draw_compared(ui);
  draw_limit_label(ui);
  point(ui, held);
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ui.probes.put("trade.plot", least, {least.x + size.x, least.y + size.y});
  ImPlot::EndPlot();
}

}  // namespace shardwise::view
