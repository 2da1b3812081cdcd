#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gui/models/scaling/break_even_model.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr std::array kLinePaints = {sim::Paint::forward,   sim::Paint::backward,
                                    sim::Paint::optimizer, sim::Paint::reduce,
                                    sim::Paint::layer,     sim::Paint::copy};

std::string_view line_ink(Ui& ui, std::size_t line) {
  return ui.theme.of(kLinePaints[line % kLinePaints.size()]);
}

void draw_lever_menu(Ui& ui) {
  const BreakEvenView& view = ui.state.scaling.break_even;
  std::vector<std::string> keys;
  for (const Lever& each : view.levers) keys.push_back(lever_key(ui.state.plan.cluster, each));
  const int chosen = segments(ui, "scaling.lever", keys, static_cast<int>(view.lever));
  if (chosen >= 0) ui.want("scaling.lever " + keys[static_cast<std::size_t>(chosen)]);
}

/// A contender's cost by factor; NaN where nothing fits.
struct Line {
  std::vector<double> factors;
  std::vector<double> costs;
  bool still() const { return std::ranges::count(costs, costs.front()) == std::ssize(costs); }
};

Line line_of(const std::vector<LinePoint>& points) {
  Line line;
  for (const LinePoint& each : points) {
    line.factors.push_back(each.factor);
    line.costs.push_back(each.layout ? each.cost : std::numeric_limits<double>::quiet_NaN());
  }
  return line;
}

/// Ticks with the quantity's values at a few factors.
void setup_factors(Ui& ui, const Lever& lever, const std::vector<double>& grid) {
  const Plan& plan = ui.state.plan;
  constexpr float kWide = 460;
  const std::size_t every = ImGui::GetContentRegionAvail().x < ui.units(kWide) ? 4 : 2;
  std::vector<sim::Tick> ticks;
  for (std::size_t i = 0; i < grid.size(); i += every) {
    ticks.push_back({grid[i], value_at(plan.cluster, lever, grid[i])});
  }
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
  set_ticks(ImAxis_X1, ticks);
  // Half of the first and the last label is beyond the grid.
  float half = 0;
  for (const sim::Tick* const end : {&ticks.front(), &ticks.back()}) {
    half = std::max(half, ImGui::CalcTextSize(end->label.c_str()).x / 2);
  }
  const double width = std::max(ImGui::GetContentRegionAvail().x - ui.units(60), 4 * half);
  const double span = std::log(grid.back() / grid.front());
  const double edge = std::exp(half * span / (width - 2 * half));
  ImPlot::SetupAxisLimits(ImAxis_X1, grid.front() / std::min(edge, 1.12), grid.back() * edge,
                          ImPlotCond_Always);
}

/// The range of the lines that move, and of still ones that are near them.
void setup_costs(const std::vector<Line>& lines, bool dollars) {
  constexpr double kNear = 1.35;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  const auto include = [&](const Line& line, bool all) {
    for (const double cost : line.costs) {
      if (!(cost > 0)) continue;
      if (!all && (cost > most * kNear || cost * kNear < least)) continue;
      least = std::min(least, cost);
      most = std::max(most, cost);
    }
  };
  for (const Line& line : lines) {
    if (!line.still()) include(line, true);
  }
  for (const Line& line : lines) include(line, most <= 0);
  if (most <= 0) least = most = 1;
  least *= 0.98;
  most *= 1.02;
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  ImPlot::SetupAxisLimits(ImAxis_Y1, least, most, ImPlotCond_Always);
  std::vector<sim::Tick> ticks;
  for (const double value : sim::log_values(least, most)) {
    ticks.push_back({value, (dollars ? "$" : "") + round_text(value)});
  }
  set_ticks(ImAxis_Y1, ticks);
}

/// The places where another wins; each has a probe.
void draw_marks(Ui& ui, const std::vector<BreakEvenMark>& marks) {
  ImPlot::PushPlotClipRect();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const ImVec2 corner = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  const auto upright = [&](double factor, std::string_view hex, float wide) {
    const float x = ImPlot::PlotToPixels(factor, 1).x;
    list.AddLine({x, corner.y}, {x, corner.y + size.y}, ui.ink(hex), ui.units(wide));
    return x;
  };
  upright(1, ui.theme.text, 1);
  struct Number {
    float x;
    std::string words;
  };
  std::vector<Number> numbers;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].factor == 1) continue;
    const float x =
        upright(marks[i].factor, marks[i].layout ? ui.theme.quiet : ui.theme.warning, 1.5F);
    const ImVec2 least(x - ui.units(3), corner.y);
    const ImVec2 most(x + ui.units(3), corner.y + size.y);
    ui.probes.put(fmt::format("break_even.mark.{}", i + 1), least, most);
    numbers.push_back({x + ui.units(2), fmt::format("{}", i + 1)});
    if (ImGui::IsMouseHoveringRect(least, most)) ImGui::SetTooltip("%s", marks[i].text.c_str());
  }
  // Numbers below, where there is room beside the last one's, and over the lines.
  float taken = 0;
  const float line = ImGui::GetTextLineHeight();
  for (const Number& each : numbers) {
    if (each.x < taken) continue;
    const ImVec2 at(each.x, corner.y + size.y - line);
    taken = at.x + ImGui::CalcTextSize(each.words.c_str()).x + ui.units(1);
    list.AddRectFilled(at, {taken, at.y + line}, ui.ink(ui.theme.panel));
    draw_text(ui, at, each.words, ui.ink(ui.theme.text));
  }
  ImPlot::PopPlotClipRect();
}

void draw_lines(Ui& ui, const std::vector<BreakEvenMark>& marks, float height) {
  const BreakEvenView& view = ui.state.scaling.break_even;
  const BreakEven& found = view.found;
  std::vector<Line> lines;
  for (const std::vector<LinePoint>& points : found.lines) lines.push_back(line_of(points));
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
  if (!ImPlot::BeginPlot("##break_even", {-1, height}, flags)) return;
  setup_factors(ui, view.levers[view.lever], view.grid);
  setup_costs(lines, found.dollars);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ImPlotSpec spec;
    spec.LineColor = colour4(line_ink(ui, i));
    spec.LineWeight = ui.units(i == 0 ? 3.0F : 1.8F);
    ImPlot::PlotLine(fmt::format("##{}", i).c_str(), lines[i].factors.data(), lines[i].costs.data(),
                     static_cast<int>(lines[i].factors.size()), spec);
  }
  draw_marks(ui, marks);
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ui.probes.put("break_even.plot", least, {least.x + size.x, least.y + size.y});
  ImPlot::EndPlot();
}

/// The lines, and what they are.
void draw_plot(Ui& ui, const std::vector<BreakEvenMark>& marks) {
  const BreakEvenView& view = ui.state.scaling.break_even;
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (std::size_t i = 0; i < view.contenders.size(); ++i) {
    entries.emplace_back(view.contenders[i], line_ink(ui, i));
  }
  entries.emplace_back("as it is", ui.theme.text);
  legend(ui, entries);
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const float words = line * static_cast<float>(std::clamp<std::size_t>(marks.size(), 1, 6));
  const float room = ImGui::GetContentRegionAvail().y;
  constexpr float kLeastPlot =
      110;  // its height: below it labels of the axis overlap, and the panel scrolls
  constexpr float kPlotShare = 0.6F;  // at least: words scroll
  draw_lines(ui, marks,
             std::max({room - words - ui.units(4), kPlotShare * room, ui.units(kLeastPlot)}));
}

}  // namespace

void draw_break_even(Ui& ui) {
  const BreakEvenView& view = ui.state.scaling.break_even;
  const bool dollars = view.found.dollars;
  model_heading(ui, "Break-even",
                view.found.lines.empty() ? ""
                : dollars                ? "dollars for 1e9 tokens"
                                         : "GPU-hours for 1e9 tokens");
  if (view.levers.empty()) return text(ui, "searching …", ui.theme.quiet);
  draw_lever_menu(ui);
  if (view.found.lines.empty() || view.found.lines.front().size() < 2) {
    return text(ui, ui.state.scaling.paused ? "searching …" : "searched after the map",
                ui.theme.quiet);
  }
  const std::vector<BreakEvenMark> marks = break_even_marks(ui.state.plan, view);
  // An axis without a line tells nothing.
  if (fits_anywhere(view.found)) draw_plot(ui, marks);
  if (!view.known) return text(ui, "searching where lines cross …", ui.theme.quiet);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].factor != 1) {
      text(ui, fmt::format("{}", i + 1), ui.theme.text);
      ImGui::SameLine();
    }
    ImGui::PushTextWrapPos(0);
    text(ui, marks[i].text, marks[i].layout ? ui.theme.quiet : ui.theme.warning);
    ImGui::PopTextWrapPos();
    ui.probes.put_item(fmt::format("break_even.text.{}", i + 1));
  }
}

}  // namespace shardwise::view
