#include <implot.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/metrics_state.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

/// Points of a line over the numbers of steps, and what they span.
struct Course {
  std::vector<double> x;
  std::vector<double> y;
  double least = INFINITY;
  double most = -INFINITY;
  void add(double step, double value) {
    x.push_back(step);
    y.push_back(value);
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

void plot(Ui& ui, const char* name, const Course& course, std::string_view hex,
          ImPlotFormatter label, double level, ImVec2 size) {
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
  if (label != nullptr) ImPlot::SetupAxisFormat(ImAxis_Y1, label);
  ImPlot::SetupAxesLimits(course.x.front() - 0.5, course.x.back() + 0.5, least - room, most + room,
                          ImPlotCond_Always);
  ImPlot::SetupFinish();
  ImPlotSpec line;
  line.LineColor = colour4(hex);
  line.LineWeight = ui.units(1.6F);
  ImPlot::PlotLine("measured", course.x.data(), course.y.data(), static_cast<int>(course.x.size()),
                   line);
  const ImVec2 least_at = ImPlot::GetPlotPos();
  const ImVec2 extent = ImPlot::GetPlotSize();
  const std::string probe = std::string("metrics.") + (name + 2);
  ui.probes.put(probe, least_at, {least_at.x + extent.x, least_at.y + extent.y});
  if (level > 0) {
    const float y = std::floor(ImPlot::PlotToPixels(course.x.front(), level).y);
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
  if (metrics.steps.empty()) return;
  Course times;
  Course losses;
  for (const MetricsStep& each : metrics.steps) {
    const auto step = static_cast<double>(each.step);
    times.add(step, each.time.value());
    losses.add(step, each.loss);
  }
  text(ui, "time of a step, the line is predicted", ui.theme.quiet);
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const float height = (ImGui::GetContentRegionAvail().y - line) / 2;
  if (height < ui.units(40)) return;
  plot(ui, "##time", times, ui.theme.warning, seconds_label, predicted.value(), {-1, height});
  text(ui, "loss", ui.theme.quiet);
  plot(ui, "##loss", losses, ui.theme.good, nullptr, 0, {-1, -1});
}

}  // namespace shardwise::view
