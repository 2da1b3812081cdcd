#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "gui/models/compare/compare_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {

namespace {

/// Of what the plan is compared with; null where it says nothing of the axis.
const AxisTime* axis_beside(const Ui& ui, std::string_view axis) {
  const CompareView* const view = ui.state.compare.overlay_view();
  if (view == nullptr) return nullptr;
  const auto found = std::ranges::find(view->axes, axis, &AxisTime::axis);
  return found == view->axes.end() ? nullptr : &*found;
}

}  // namespace

void draw_axes(Ui& ui) {
  const StepReport& report = ui.state.best_report();
  heading(ui, "by axis",
          report.timeline ? "simulated, on the stage that computes longest"
                          : "estimated, on the slowest stage");
  if (report.by_axis.empty()) {
    text(ui, "one GPU communicates with nobody", ui.theme.quiet);
    return;
  }
  Seconds most;
  for (const AxisTime& axis : report.by_axis) most = std::max(most, axis.total);
  for (const AxisTime& axis : report.by_axis) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float left = at.x + ui.units(70);
    const float width = ImGui::GetContentRegionAvail().x - ui.units(70 + 170);
    const float height = ImGui::GetTextLineHeight();
    const auto reach = [&](Seconds time) {
      return most > Seconds(0) ? static_cast<float>(time / most) * width : 0;
    };
    draw_text(ui, at, axis.axis, ui.ink(ui.theme.text));
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.AddRectFilled({left, at.y + ui.units(3)}, {left + reach(axis.total), at.y + height},
                       ui.ink(ui.theme.of(sim::Paint::layer)));
    list.AddRectFilled({left, at.y + height - ui.units(5)},
                       {left + reach(axis.exposed), at.y + height}, ui.ink(ui.theme.bad));
    draw_text(
        ui, {at.x + ImGui::GetContentRegionAvail().x, at.y},
        fmt::format("{}, exposed {}", format_seconds(axis.total), format_seconds(axis.exposed)),
        ui.ink(ui.theme.quiet), 1);
    if (const AxisTime* const other = axis_beside(ui, axis.axis); other != nullptr) {
      const float x = left + reach(std::min(other->exposed, most));
      list.AddRectFilled({x - ui.units(1), at.y + height - ui.units(8)},
                         {x + ui.units(1), at.y + height + ui.units(2)}, ui.ink(ui.theme.text));
      ui.probes.put("axes." + axis.axis + ".tick", {x - ui.units(1), at.y},
                    {x + ui.units(1), at.y + height});
    }
    ui.probes.put("axes." + axis.axis, {left, at.y}, {left + reach(axis.total), at.y + height});
    ImGui::Dummy({0, height + ui.units(4)});
  }
}

}  // namespace shardwise::view
