#include "gui/panels/plot.h"

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
