#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/compare_model.h"
#include "gui/models/explore_model.h"
#include "gui/models/summary_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kSlowest = 2.2;  // of the fastest time: what is drawn until people zoom out
double gib(Bytes bytes) { return static_cast<double>(bytes.value()) / kGiB; }

/// Dots of one kind.
struct Dots {
  std::vector<double> x;
  std::vector<double> y;
};

int time_label(double value, char* to, int size, void* /*unused*/) {
  const std::string label = format_seconds(Seconds(value));
  const auto count = std::min(label.size(), static_cast<std::size_t>(size - 1));
  label.copy(to, count);
  to[count] = '\0';
  return static_cast<int>(count);
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
  spec.LineColor = colour4(ui.theme.warning);
  spec.LineWeight = ui.units(1.8F);
  ImPlot::PlotStairs("front", front.x.data(), front.y.data(), static_cast<int>(front.x.size()),
                     spec);
}

/// What is right of the line does not fit.
void draw_limit(Ui& ui) {
  const double usable = gib(ui.state.answer.usable);
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const ImVec2 top = ImPlot::PlotToPixels(usable, limits.Y.Max);
  const ImVec2 bottom = ImPlot::PlotToPixels(limits.X.Max, limits.Y.Min);
  ImPlot::PushPlotClipRect();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  list.AddRectFilled(top, bottom, ui.ink(ui.theme.bad, 0.10F));
  list.AddRectFilled(top, {top.x + ui.units(1.5F), bottom.y}, ui.ink(ui.theme.bad));
  const std::string label = format_bytes(ui.state.answer.usable);
  list.AddText({std::floor(top.x + ui.units(6)), std::floor(top.y + ui.units(4))},
               ui.ink(ui.theme.bad), label.c_str());
  ImPlot::PopPlotClipRect();
  ui.probes.put("trade.limit", {top.x, top.y}, {top.x + ui.units(1.5F), bottom.y});
}

void draw_selected(Ui& ui) {
  if (ui.state.selected >= ui.state.answer.rows.size()) return;
  const LayoutRow& row = ui.state.answer.rows[ui.state.selected];
  const ImVec2 at = ImPlot::PlotToPixels(gib(row.memory), row.time.value());
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddCircle(at, ui.units(7), ui.ink(ui.theme.text), 0, ui.units(2));
  ImPlot::PopPlotClipRect();
  ui.probes.put("trade.selected", {at.x - ui.units(7), at.y - ui.units(7)},
                {at.x + ui.units(7), at.y + ui.units(7)});
}

/// What the plan is compared with, as a square.
void draw_compared(Ui& ui) {
  const Compared* const other = ui.state.compare.overlay();
  if (other == nullptr || !other->whole()) return;
  const std::optional<Bytes> peak = peak_beside(ui.state.report, other->report);
  if (!peak) return;
  const ImVec2 at = ImPlot::PlotToPixels(gib(*peak), other->report.step_time.value());
  const float half = ui.units(5);
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddRect({at.x - half, at.y - half}, {at.x + half, at.y + half},
                                     ui.ink(ui.theme.text), 0, ui.units(2));
  ImPlot::PopPlotClipRect();
  ui.probes.put("trade.compared", {at.x - half, at.y - half}, {at.x + half, at.y + half});
}

/// The dot under the pointer: says what it is, and a click selects it.
void hover(Ui& ui) {
  if (!ImPlot::IsPlotHovered()) return;
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
  if (best == ui.state.shown.size()) return;
  const LayoutRow& row = ui.state.answer.rows[ui.state.shown[best]];
  ImGui::SetTooltip("%s\n%s, %s a step", layout_text(row.layout).c_str(),
                    format_bytes(row.memory).c_str(), format_seconds(row.time).c_str());
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    ui.want(fmt::format("layout.select {}", best + 1));
  }
}

}  // namespace

void draw_trade(Ui& ui) {
  const bool bounds = ui.state.current() && !ui.state.answer.exact;
  heading(
      ui, "Memory and time",
      bounds ? known_text(ui.state.answer, true) : "a dot is a layout, the line the best trade");
  if (ui.state.shown.empty()) {
    text(ui, ui.state.current() ? "no rows are shown" : "searching …", ui.theme.quiet);
    return;
  }
  Dots fits;
  Dots risk;
  Dots over;
  double fastest = INFINITY;
  double slowest = 0;
  double largest = gib(ui.state.answer.usable);
  for (const std::uint32_t i : ui.state.shown) {
    const LayoutRow& row = ui.state.answer.rows[i];
    Dots& dots = row.fit == Fit::fits ? fits : row.fit == Fit::at_risk ? risk : over;
    dots.x.push_back(gib(row.memory));
    dots.y.push_back(row.time.value());
    fastest = std::min(fastest, row.time.value());
    slowest = std::max(slowest, row.time.value());
    largest = std::max(largest, std::min(gib(row.memory), 1.6 * gib(ui.state.answer.usable)));
  }
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
  // Another question's dots lie elsewhere: what people zoomed to was of the last one.
  const std::string name = fmt::format("##trade{}", ui.state.asked);
  if (!ImPlot::BeginPlot(name.c_str(), {-1, -1}, flags)) return;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%g GiB");
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisFormat(ImAxis_Y1, time_label);
  ImPlot::SetupAxesLimits(0, 1.06 * largest, 0.94 * fastest,
                          std::min(1.04 * slowest, kSlowest * fastest),
                          ui.state.current() ? ImPlotCond_Once : ImPlotCond_Always);
  ImPlot::SetupFinish();
  plot_dots(ui, "over", over, ui.theme.quiet, 2.2F);
  plot_dots(ui, "risk", risk, ui.theme.warning, 2.4F);
  plot_dots(ui, "fits", fits, ui.theme.accent, 2.6F);
  draw_limit(ui);
  plot_front(ui);
  draw_selected(ui);
  draw_compared(ui);
  hover(ui);
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ui.probes.put("trade.plot", least, {least.x + size.x, least.y + size.y});
  ImPlot::EndPlot();
}

}  // namespace shardwise::view
