// What is chosen, measured and stretched on the timeline.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "gui/models/timeline/readout.h"
#include "gui/models/timeline/stretch_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

/// A moment with the digits that the zoom tells apart.
std::string moment_close(Seconds at, TimeRange range) {
  constexpr double kParts = 10;
  return range.length() > 0 ? sim::moment_text(at, Seconds(range.length() / kParts))
                            : format_seconds(at);
}

void show_chosen(Ui& ui, const StepLanes& step, const TimelineView& view) {
  if (!view.chosen) return;
  const Lane* const lane = step.find(view.chosen->lane);
  if (lane == nullptr || view.chosen->span >= lane->spans.size()) return;
  text(ui, fmt::format("stage {}, rank {}, {}", lane->stage, lane->rank, name_of(lane->stream)),
       ui.theme.quiet);
  text(ui, span_text(step, *lane, view.chosen->span), ui.theme.text);
  ui.probes.put_item("selection.span");
  if (view.waited.empty()) return;
  const TimeRange range = ui.state.range;
  text(ui, "waited for", ui.theme.quiet);
  for (std::size_t i = 0; i < view.waited.size(); ++i) {
    const Lane* const other = step.find(view.waited[i].lane);
    if (other == nullptr) continue;
    const std::string words =
        fmt::format("{}, ended at {}###waited{}", span_name(step, *other, view.waited[i].span),
                    moment_close(Seconds(other->spans.end[view.waited[i].span]), range), i);
    if (ImGui::Selectable(words.c_str(), i == 0)) {
      const double middle =
          (other->spans.start[view.waited[i].span] + other->spans.end[view.waited[i].span]) / 2;
      ui.want(fmt::format("timeline.select {} {}", text_of(view.waited[i].lane), middle));
    }
    ui.probes.put_item(fmt::format("selection.waited.{}", i));
  }
}

void show_lanes(Ui& ui, const Readout& readout) {
  if (!ImGui::BeginTable("readout", 5,
                         ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp)) {
    return;
  }
  ImGui::TableSetupColumn("lane", ImGuiTableColumnFlags_WidthStretch, 2);
  for (const char* heading : {"busy", "share", "moved", "bus"}) {
    ImGui::TableSetupColumn(heading, ImGuiTableColumnFlags_WidthStretch, 1);
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableNextColumn();
  for (const std::string_view heading : {"busy", "share", "moved", "bus"}) {
    ImGui::TableNextColumn();
    number_right(ui, heading, ui.theme.quiet);
  }
  for (const LaneReadout& lane : readout.lanes) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text(ui, lane.label, ui.theme.quiet);
    ui.probes.put_item("selection." + text_of(lane.lane));
    const auto cell = [&](const std::string& words) {
      ImGui::TableNextColumn();
      number_right(ui, words, ui.theme.text);
    };
    cell(format_seconds(Seconds(lane.busy)));
    cell(format_percent(readout.duration > 0 ? lane.busy / readout.duration : 0));
    cell(lane.bytes > 0 ? format_bytes(Bytes(static_cast<std::int64_t>(lane.bytes))) : "");
    cell(lane.bus > BytesPerSecond(0) ? format_bandwidth(lane.bus) : "");
  }
  ImGui::EndTable();
}

}  // namespace

void draw_selection(Ui& ui) {
  const TimelineView& view = ui.state.timeline;
  const StepLanes* const step = ui.state.shown_step();
  heading(ui, "Selection", view.measured ? "of the measured part" : "of the step");
  if (step == nullptr || !step->simulated) return;
  const bool stretched = view.stretch && ui.state.lanes && ui.state.lanes->report;
  if (stretched) {
    text(ui, worth_of(*view.stretch, *ui.state.lanes->report).text, ui.theme.accent);
    ui.probes.put_item("selection.worth");
  }
  const TimeRange range = view.measured.value_or(TimeRange{0, step->length});
  const Readout readout = read_out(*step, range);
  std::string line = text_of(readout);
  const char* before = "; exposed by axis: ";
  for (const AxisTime& axis : step->report->by_axis) {
    if (view.measured || axis.exposed <= Seconds(0)) continue;
    line += fmt::format("{}{} {}", std::exchange(before, ", "), axis.axis,
                        format_seconds(axis.exposed));
  }
  text(ui, line, ui.theme.text);
  ui.probes.put_item("selection.sums");
  if (!view.chosen) return show_lanes(ui, readout);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (ImGui::BeginChild("chosen", {room.x * 0.4F, 0})) show_chosen(ui, *step, view);
  ImGui::EndChild();
  ImGui::SameLine();
  if (ImGui::BeginChild("lanes", {0, 0})) show_lanes(ui, readout);
  ImGui::EndChild();
}

}  // namespace shardwise::view
