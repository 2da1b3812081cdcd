#include "gui/panels/timeline_heading.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/compare/compare_model.h"
#include "gui/models/question/predictions.h"
#include "gui/models/timeline/readout.h"
#include "gui/models/timeline/stretch_model.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

void draw_lanes_legend(Ui& ui, const StepLanes& step) {
  std::vector<std::pair<std::string, std::string_view>> entries;
  const ColourBy by = ui.state.timeline.colour;
  for (std::size_t p = 0; p < step.paints.size(); ++p) {
    if (by == ColourBy::kind && step.paints[p]) {
      entries.emplace_back(sim::kPaints[p].name, ui.theme.of(static_cast<sim::Paint>(p)));
    }
  }
  if (by == ColourBy::axis) {
    std::map<TrafficAxis, sim::Paint> axes;
    for (const Lane& lane : step.lanes) {
      if (!lane.spans.empty()) axes[lane.spans.axis()] = colour_of(lane.spans, 0, by);
    }
    for (const auto& [axis, paint] : axes) {
      entries.emplace_back(axis == TrafficAxis::none ? "compute" : name_of(axis),
                           ui.theme.of(paint));
    }
  }
  if (by == ColourBy::microbatch) entries.emplace_back("micro-batches in turn", ui.theme.text);
  entries.emplace_back("exposed communication", ui.theme.bad);
  legend(ui, entries);
}

/// The span that is exposed longest, to go to.
void draw_worst(Ui& ui, const StepLanes& step) {
  if (!step.worst) return;
  ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(ui.theme.bad));
  const std::string words = "longest exposed: " + step.worst->text;
  const std::string shown = fitting(ui, words, ImGui::GetContentRegionAvail().x);
  if (ImGui::Selectable(shown.c_str(), false, 0, {ImGui::CalcTextSize(shown.c_str()).x, 0})) {
    ui.want("timeline.worst");
  }
  ImGui::PopStyleColor();
  ImGui::SetItemTooltip("%s", words.c_str());
  ui.probes.put_item("timeline.worst");
  ImGui::SameLine();
}

/// What the mouse does here, where the rest of the line has room for it.
void draw_mouse_hint(Ui& ui) {
  const std::string hint = "drag to measure, drag a block's edge to see what that kind is worth";
  if (ImGui::CalcTextSize(hint.c_str()).x > ImGui::GetContentRegionAvail().x) {
    return ImGui::NewLine();
  }
  text(ui, hint, ui.theme.quiet);
}

/// What the line below the legend says.
void draw_status(Ui& ui, const StepLanes& step) {
  const TimelineView& view = ui.state.timeline;
  if (view.stretch && ui.state.lanes && ui.state.lanes->report) {
    text(ui, worth_of(*view.stretch, *ui.state.lanes->report).text, ui.theme.accent);
    ui.probes.put_item("timeline.worth");
  } else if (view.measured) {
    text(ui, text_of(read_out(step, *view.measured)), ui.theme.text);
    ui.probes.put_item("timeline.readout");
  } else {
    draw_worst(ui, step);
    draw_mouse_hint(ui);
  }
}

/// Why what is compared has no lanes here.
void draw_lack(Ui& ui) {
  const CompareView* const view = ui.state.compare.overlay_view();
  if (view == nullptr) return;
  const std::string lack = no_lanes_text(*view, *ui.state.compare.other);
  if (lack.empty()) return;
  wrapped_text(ui, lack, ui.theme.warning);
  ui.probes.put_item("timeline.no_lanes");
}

}  // namespace

void draw_step_heading(Ui& ui, const StepLanes& step) {
  std::string note = step.problem;
  if (step.simulated) {
    note = fmt::format("simulated, {}, {}", format_seconds(Seconds(step.length)),
                       ui.state.all_lanes ? "all streams" : "busy streams (L)");
    if (ui.state.timeline.rank > 0) note += fmt::format(", rank {}", ui.state.timeline.rank);
    const double slower = Predictions(ui.state.correction).slower(ui.state.plan);
    if (slower != 1)
      note += fmt::format(", before the run's correction ({:+.1f} %)", 1e2 * slower - 1e2);
  }
  heading(ui, "One step", note);
  if (!step.simulated) return;
  draw_lanes_legend(ui, step);
  if (ui.state.workspace == Workspace::timeline) draw_status(ui, step);
  draw_lack(ui);
}

}  // namespace shardwise::view
