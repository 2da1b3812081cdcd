#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gui/models/columns.h"
#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

constexpr float kBarWidth = 150;
constexpr double kAxis = 1.25;  // of the usable memory: what a bar's cell has room for

std::size_t memory_column() {
  static const std::size_t kColumn = find_column("memory").value_or(0);
  return kColumn;
}

/// The memory of a row by group against what a GPU has.
void draw_bar(Ui& ui, std::size_t index, const std::string& probe) {
  const LayoutRow& row = ui.state.answer.rows[index];
  const double axis = kAxis * static_cast<double>(ui.state.answer.usable.value());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = ImGui::GetTextLineHeight();
  const float top = at.y + height * 0.18F;
  const float bottom = at.y + height * 0.86F;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto x = [&](Bytes bytes) {
    return at.x +
           width * static_cast<float>(std::min(1.0, static_cast<double>(bytes.value()) / axis));
  };
  const bool over = row.fit == Fit::does_not_fit;
  const float alpha = over ? 0.45F : 1;
  const auto& groups = ui.state.bars[index];
  if (groups) {
    Bytes sum;
    for (std::size_t g = 0; g < kMemoryGroups; ++g) {
      const float from = x(sum);
      sum += (*groups)[g];
      const float to = x(sum);
      if (to > from) {
        list.AddRectFilled({from, top}, {to, bottom},
                           ui.ink(ui.theme.of(static_cast<MemoryGroup>(g)), alpha));
      }
    }
  } else {
    list.AddRectFilled({at.x, top}, {x(row.memory), bottom}, ui.ink(ui.theme.hovered));
  }
  if (row.fit == Fit::at_risk) {
    list.AddRectFilled({x(row.memory), (top + bottom) / 2 - ui.units(1)},
                       {x(row.upper), (top + bottom) / 2 + ui.units(1)}, ui.ink(ui.theme.warning));
  }
  const float limit = x(ui.state.answer.usable);
  list.AddRectFilled({limit, at.y - ui.units(2)},
                     {limit + ui.units(1), at.y + height + ui.units(2)},
                     ui.ink(ui.theme.bad, 0.8F));
  ui.probes.put(probe + ".bar", {at.x, top}, {x(row.memory), bottom});
  ImGui::Dummy({width, height});
}

void draw_header(Ui& ui, const std::vector<std::size_t>& shown) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (const std::size_t c : shown) {
    const Column& column = columns()[c];
    if (!ImGui::TableNextColumn()) continue;
    ImGui::PushID(static_cast<int>(c));
    const auto key = std::ranges::find(ui.state.explore.sort, c, &SortKey::column);
    const bool sorted = key != ui.state.explore.sort.end();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    if (ImGui::InvisibleButton("sort", {std::max(1.0F, width), ImGui::GetTextLineHeight()})) {
      ui.want(fmt::format("table.sort {}{}", ImGui::GetIO().KeyShift ? "+" : "", column.key));
    }
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) {
      ImGui::SetTooltip("%.*s", static_cast<int>(column.meaning.size()), column.meaning.data());
    }
    ui.probes.put_item(fmt::format("explorer.head.{}", column.key));
    draw_text(ui, {at.x + width, at.y}, column.heading,
              ui.ink(sorted || hovered ? ui.theme.text : ui.theme.quiet), 1);
    if (sorted) {
      const float arrow = ui.units(3.5F);
      const ImVec2 tip(at.x + width - arrow, at.y + ImGui::GetTextLineHeight() + ui.units(1));
      const float rise = key->descending ? arrow : -arrow;
      ImGui::GetWindowDrawList()->AddTriangleFilled(
          {tip.x, tip.y + rise / 2}, {tip.x - arrow, tip.y - rise / 2},
          {tip.x + arrow, tip.y - rise / 2}, ui.ink(ui.theme.accent));
    }
    ImGui::PopID();
    if (c == memory_column()) ImGui::TableNextColumn();
  }
}

void draw_row(Ui& ui, std::size_t place, const std::vector<std::size_t>& shown) {
  const std::uint32_t index = ui.state.shown[place];
  const LayoutRow& row = ui.state.answer.rows[index];
  const std::string probe = fmt::format("explorer.row.{}", place + 1);
  ImGui::TableNextRow();
  ImGui::PushID(static_cast<int>(place));
  const bool selected = index == ui.state.selected;
  const std::string_view ink = row.fit == Fit::does_not_fit ? ui.theme.quiet : ui.theme.text;
  bool first = true;
  for (const std::size_t c : shown) {
    const Column& column = columns()[c];
    if (!ImGui::TableNextColumn() && !first) continue;
    if (first) {
      const ImVec2 at = ImGui::GetCursorPos();
      ImGui::PushStyleColor(ImGuiCol_Header, ui.ink(ui.theme.selected));
      if (ImGui::Selectable(
              "##row", selected,
              ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap)) {
        ui.want(fmt::format("layout.select {}", place + 1));
      }
      ImGui::PopStyleColor();
      ui.probes.put_item(probe);
      ImGui::SetCursorPos(at);
      first = false;
    }
    const bool memory = c == memory_column();
    number_right(ui, column.text(row),
                 memory && row.fit != Fit::fits
                     ? (row.fit == Fit::at_risk ? ui.theme.warning : ui.theme.bad)
                     : ink);
    if (!memory) continue;
    if (ImGui::TableNextColumn()) draw_bar(ui, index, probe);
  }
  ImGui::PopID();
}

void draw_controls(Ui& ui) {
  std::array<char, 256> typed{};
  ui.state.explore.filter_text.copy(typed.data(), typed.size() - 1);
  ImGui::SetNextItemWidth(-ui.units(130));
  if (ImGui::InputTextWithHint("##filter", "filter, as  tp<=8 mfu>40 zero:1   ( / )", typed.data(),
                               typed.size())) {
    ui.want(fmt::format("table.filter {}", typed.data()));
  }
  ui.probes.put_item("explorer.filter");
  ImGui::SameLine();
  bool only = ui.state.explore.only_fitting;
  if (ImGui::Checkbox("only fitting", &only)) ui.want("table.fitting");
  ui.probes.put_item("explorer.fitting");
  if (!ui.state.explore.parsed.problem.empty()) {
    text(ui, ui.state.explore.parsed.problem, ui.theme.warning);
    ui.probes.put_item("explorer.problem");
  }
}

}  // namespace

void draw_explorer(Ui& ui) {
  heading(ui, "Strategies", counts_text(ui.state.answer, ui.state.shown.size()));
  draw_controls(ui);
  if (ui.state.answer.rows.empty()) {
    text(ui, ui.state.current() ? "no layout is legal" : "searching …", ui.theme.quiet);
    return;
  }
  constexpr double kLeastBar = 70;
  constexpr double kBetween = 8;
  constexpr double kScrollbar = 14;
  const double room = ImGui::GetContentRegionAvail().x / ui.scale;
  const std::vector<std::size_t> shown = columns_within(
      telling_columns(ui.state.answer), room, kBetween, kLeastBar + kBetween + kScrollbar);
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_NoSavedSettings | ImGuiTableFlags_NoBordersInBody;
  ImGui::PushStyleVarX(ImGuiStyleVar_CellPadding, ui.units(4));
  const bool begun = ImGui::BeginTable("rows", static_cast<int>(shown.size()) + 1, flags);
  ImGui::PopStyleVar();
  if (!begun) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const std::size_t c : shown) {
    const Column& column = columns()[c];
    ImGui::TableSetupColumn(std::string(column.key).c_str(), ImGuiTableColumnFlags_WidthFixed,
                            ui.units(static_cast<float>(column.width)));
    if (c == memory_column()) {
      ImGui::TableSetupColumn("bar", ImGuiTableColumnFlags_WidthStretch, ui.units(kBarWidth));
    }
  }
  draw_header(ui, shown);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ui.state.shown.size()));
  while (clipper.Step()) {
    for (int place = clipper.DisplayStart; place < clipper.DisplayEnd; ++place) {
      ui.visible_rows.push_back(ui.state.shown[static_cast<std::size_t>(place)]);
      draw_row(ui, static_cast<std::size_t>(place), shown);
    }
  }
  ImGui::EndTable();
}

}  // namespace shardwise::view
