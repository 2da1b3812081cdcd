#include "gui/panels/plot.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cstddef>

#include "planner/spec/format.h"

namespace shardwise::view {

int seconds_label(double seconds, char* to, int size, void* /*unused*/) {
  const std::string label = format_seconds(Seconds(seconds));
  const auto count = std::min(label.size(), static_cast<std::size_t>(size - 1));
  label.copy(to, count);
  to[count] = '\0';
  return static_cast<int>(count);
}

std::string round_text(double value) {
  constexpr double kWhole = 1000;
  return value < kWhole ? fmt::format("{:g}", value) : format_scaled(value);
}

void set_ticks(int axis, const std::vector<sim::Tick>& ticks, double unit) {
  if (ticks.empty()) return;
  std::vector<double> values;
  std::vector<const char*> labels;
  for (const sim::Tick& each : ticks) {
    values.push_back(each.value / unit);
    labels.push_back(each.label.c_str());
  }
  ImPlot::SetupAxisTicks(axis, values.data(), static_cast<int>(values.size()), labels.data());
}

void mark_compared(Ui& ui, const std::string& probe, double x, double y) {
  const ImVec2 at = ImPlot::PlotToPixels(x, y);
  const float half = ui.units(5);
  const ImVec2 least(at.x - half, at.y - half);
  const ImVec2 most(at.x + half, at.y + half);
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddRect(least, most, ui.ink(ui.theme.text), 0, ui.units(2));
  ImPlot::PopPlotClipRect();
  ui.probes.put(probe, least, most);
}

}  // namespace shardwise::view
