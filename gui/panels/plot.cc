#include "gui/panels/plot.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "planner/spec/text/format.h"

namespace shardwise::view {

namespace {

int put_label(const std::string& label, char* to, int size) {
  const auto count = std::min(label.size(), static_cast<std::size_t>(size - 1));
  label.copy(to, count);
  to[count] = '\0';
  return static_cast<int>(count);
}

}  // namespace

int seconds_label(double seconds, char* to, int size, void* /*unused*/) {
  return put_label(format_seconds(Seconds(seconds)), to, size);
}

int count_label(double count, char* to, int size, void* /*unused*/) {
  return put_label(format_count(std::llround(count)), to, size);
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
