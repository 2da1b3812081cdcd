#include <implot.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/models/compare/metrics_state.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

void plot(Ui& ui, const char* name, const MetricsState& metrics, const MetricsCourse& course,
          std::string_view hex, ImPlotFormatter label, double level, ImVec2 size) {
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
  if (!ImPlot::BeginPlot(name, size, flags)) return;
  double least = course.least;
  double most = course.most;
  if (level > 0) {
    least = std::min(least, level);
    most = std::max(most, level);
  }
  if (!std::isfinite(least) || !std::isfinite(most)) least = most = 0;
  const double room = std::max(0.08 * (most - least), 0.02 * std::abs(most) + 1e-12);
  ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisFormat(ImAxis_X1, count_label);
  if (label != nullptr) ImPlot::SetupAxisFormat(ImAxis_Y1, label);
  const auto first = static_cast<double>(metrics.first.step);
  ImPlot::SetupAxesLimits(first - 0.5, static_cast<double>(metrics.last.step) + 0.5, least - room,
                          most + room, ImPlotCond_Always);
  ImPlot::SetupFinish();
  ImPlotSpec line;
  line.LineColor = colour4(hex);
  line.LineWeight = ui.units(1.6F);
  ImPlot::PlotLine("measured", course.step.data(), course.value.data(),
                   static_cast<int>(course.step.size()), line);
  const ImVec2 least_at = ImPlot::GetPlotPos();
  const ImVec2 extent = ImPlot::GetPlotSize();
  const std::string probe = std::string("metrics.") + (name + 2);
  ui.probes.put(probe, least_at, {least_at.x + extent.x, least_at.y + extent.y});
  if (level > 0) {
    const float y = std::floor(ImPlot::PlotToPixels(first, level).y);
    ImPlot::GetPlotDrawList()->AddRectFilled({least_at.x, y}, {least_at.x + extent.x, y + 2},
                                             ui.ink(ui.theme.accent));
    ui.probes.put(probe + ".predicted", {least_at.x, y}, {least_at.x + extent.x, y + 2});
  }
  ImPlot::EndPlot();
}

}  // namespace

void draw_metrics(Ui& ui) {
  const MetricsState& metrics = ui.state.metrics;
  const Seconds predicted = ui.state.best_report().step_time;
  heading(ui, "Run", metrics.file);
  if (!metrics.problem.empty()) text(ui, metrics.problem, ui.theme.bad);
  if (!metrics.note.empty()) text(ui, metrics.note, ui.theme.warning);
  text(ui, metrics_text(metrics, predicted), ui.theme.text);
  ui.probes.put_item("metrics.text");
  if (metrics.steps == 0) return;
  // Beside each other where they would be too flat.
  constexpr float kFlat = 3;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool beside = room.x > kFlat * room.y;
  const float gap = ui.units(14);  // the last number of an axis ends there
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const ImVec2 size(beside ? room.x / 2 - gap : room.x - gap,
                    beside ? room.y - line : room.y / 2 - line);
  if (size.y < ui.units(40)) return;
  ImGui::BeginGroup();
  text(ui, "time of a step, the line is predicted", ui.theme.quiet);
  plot(ui, "##time", metrics, metrics.times, ui.theme.warning, seconds_label, predicted.value(),
       size);
  ImGui::EndGroup();
  if (beside) ImGui::SameLine(0, gap);
  ImGui::BeginGroup();
  text(ui, "loss", ui.theme.quiet);
  plot(ui, "##loss", metrics, metrics.losses, ui.theme.good, nullptr, 0, size);
  ImGui::EndGroup();
}

}  // namespace shardwise::view
