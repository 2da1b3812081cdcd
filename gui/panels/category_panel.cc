#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gui/models/memory/memory_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/memory_unit.h"

namespace shardwise::view {
namespace {

float indent_of(Ui& ui, const CategoryLine& line) { return ui.units(line.whole_group ? 15 : 28); }

/// Of the column of names: as wide as they are, where numbers keep their share.
float names_width(Ui& ui, const std::vector<CategoryLine>& lines) {
  constexpr float kMost = 0.3F;
  float widest = 0;
  for (const CategoryLine& line : lines) {
    const std::string words = line.whole_group ? "+ " + line.label : line.label;
    widest = std::max(widest, indent_of(ui, line) + ImGui::CalcTextSize(words.c_str()).x);
  }
  return std::min(widest, kMost * ImGui::GetContentRegionAvail().x);
}

}  // namespace

void draw_categories(Ui& ui) {
  const std::vector<CategoryLine> lines = category_lines(ui.state.report);
  const MemoryUnit unit = memory_unit(largest_of(lines));
  heading(ui, "by category", fmt::format("{} on the fullest GPU, by phase of the step", unit.name));
  const float names = names_width(ui, lines);
  constexpr int kColumns = 1 + static_cast<int>(kMemoryPhases);
  if (!ImGui::BeginTable("categories", kColumns,
                         ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp)) {
    return;
  }
  ImGui::TableSetupColumn("category", ImGuiTableColumnFlags_WidthFixed, names);
  for (const std::string_view label : kMemoryPhaseLabels) {
    ImGui::TableSetupColumn(std::string(label).c_str(), ImGuiTableColumnFlags_WidthStretch, 1);
  }
  ImGui::TableNextColumn();
  for (const std::string_view label : kMemoryPhaseLabels) {
    ImGui::TableNextColumn();
    head_right(ui, label, ui.theme.quiet);
  }
  for (const CategoryLine& line : lines) {
    const bool open = ui.state.exploring.open_groups[static_cast<std::size_t>(line.group)];
    if (!line.whole_group && !open) continue;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (line.whole_group) {
      const ImVec2 begin = ImGui::GetCursorPos();
      ImGui::PushID(line.label.c_str());
      if (ImGui::Selectable("##group", false, ImGuiSelectableFlags_SpanAllColumns)) {
        ui.want("memory.open " + line.label);
      }
      ImGui::PopID();
      ui.probes.put_item("categories.group." + line.label);
      ImGui::SetCursorPos(begin);
    }
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float square = ui.units(9);
    if (line.whole_group) {
      const float top = at.y + (ImGui::GetTextLineHeight() - square) / 2;
      ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + square, top + square},
                                                ui.ink(ui.theme.of(line.group)), ui.units(2));
    }
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + indent_of(ui, line));
    wrapped_text(ui, line.whole_group ? (open ? "- " : "+ ") + line.label : line.label,
                 line.whole_group ? ui.theme.text : ui.theme.quiet);
    ui.probes.put_item("categories." + line.label);
    for (std::size_t p = 0; p < line.bytes.size(); ++p) {
      ImGui::TableNextColumn();
      number_right(ui, unit.number(line.bytes[p]),
                   line.whole_group ? ui.theme.text : ui.theme.quiet);
      explain(ui, fmt::format("memory.{}.{}", kMemoryPhaseLabels[p], line.label));
    }
  }
  ImGui::EndTable();
}

}  // namespace shardwise::view
