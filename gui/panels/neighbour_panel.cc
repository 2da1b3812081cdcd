#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/models/explore/neighbour_model.h"
#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

constexpr double kHalfCellShare = 0.25;  // share of the step or the memory that fills half a cell

/// To the right of the middle what is gained, to the left what is lost.
void draw_change_bar(Ui& ui, double share, std::string_view words) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = ImGui::GetTextLineHeight();
  const float half = width / 2;
  const float middle = std::floor(at.x + half);
  const auto reach = static_cast<float>(std::clamp(share / kHalfCellShare, -1.0, 1.0)) * half;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float top = at.y + height - ui.units(1);
  list.AddRectFilled({at.x, top}, {at.x + width, top + ui.units(3)}, ui.ink(ui.theme.raised));
  list.AddRectFilled({std::min(middle, middle + reach), top},
                     {std::max(middle, middle + reach), top + ui.units(3)},
                     ui.ink(share >= 0 ? ui.theme.good : ui.theme.bad));
  list.AddRectFilled({middle, top}, {middle + 1, top + ui.units(3)}, ui.ink(ui.theme.quiet));
  number_right(ui, words, ui.theme.text);
  explain(ui, "neighbour");
}

}  // namespace

void draw_neighbours(Ui& ui) {
  model_heading(ui, "Neighbours",
                ui.state.neighbours_known ? "one choice away, by time" : "pricing …");
  if (!ui.state.neighbours_known) return;
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable("neighbours", 3, kFlags)) return;
  ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch, 1);
  // As wide as their numbers: names take more lines.
  ImGui::PushFont(ui.fonts.number, 14);
  const float number = ImGui::CalcTextSize("+88.8 MiB").x;
  ImGui::PopFont();
  ImGui::TableSetupColumn("step", ImGuiTableColumnFlags_WidthFixed, number);
  ImGui::TableSetupColumn("memory", ImGuiTableColumnFlags_WidthFixed, number);
  for (std::size_t i = 0; i < ui.state.neighbours.size(); ++i) {
    const NeighbourBar& bar = ui.state.neighbours[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 at = ImGui::GetCursorPos();
    if (ImGui::Selectable("##row", false, ImGuiSelectableFlags_SpanAllColumns,
                          {0, wrapped_height(bar.text)})) {
      ui.want(fmt::format("layout.neighbour {}", i + 1));
    }
    ImGui::SetItemTooltip("%s", bar.text.c_str());
    ui.probes.put_item(fmt::format("neighbours.row.{}", i + 1));
    ImGui::SetCursorPos(at);
    wrapped_text(ui, bar.text,
                 bar.fit == Fit::fits      ? ui.theme.text
                 : bar.fit == Fit::at_risk ? ui.theme.warning
                                           : ui.theme.bad);
    ImGui::TableNextColumn();
    draw_change_bar(ui, bar.time_share, change_text(bar));
    ImGui::TableNextColumn();
    draw_change_bar(ui, bar.memory_share, memory_change_text(bar));
    ImGui::PopID();
  }
  ImGui::EndTable();
}

}  // namespace shardwise::view
