#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/explore/columns.h"
#include "gui/models/explore/explore_model.h"
#include "gui/models/question/layout_text.h"
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
void draw_memory_bar(Ui& ui, std::size_t index, const std::string& probe) {
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
  // An arrow says that the bar goes on beyond its cell.
  if (static_cast<double>(row.memory.value()) > axis) {
    const float right = at.x + width;
    const float arrow = (bottom - top) / 2;
    list.AddRectFilled({right - arrow, top}, {right, bottom}, ui.ink(ui.theme.panel));
    list.AddTriangleFilled({right - arrow, top}, {right, (top + bottom) / 2},
                           {right - arrow, bottom}, ui.ink(ui.theme.bad));
    ui.probes.put(probe + ".beyond", {right - arrow, top}, {right, bottom});
  }
  ui.probes.put(probe + ".bar", {at.x, top}, {x(row.memory), bottom});
  ImGui::Dummy({width, height});
}

/// Rows that the last frame showed whole, to see whether the selected one is among them.
struct Sight {
  ImGuiID first = ImGui::GetID("first");
  ImGuiID end = ImGui::GetID("end");
  ImGuiID moves = ImGui::GetID("moves");
};

/// Brings the selected row into sight where it moved out of it, in this frame.
void follow_selected(Ui& ui, float row_height) {
  const Sight sight;
  ImGuiStorage& storage = *ImGui::GetStateStorage();
  const auto moves = static_cast<int>(ui.state.exploring.moves);
  if (storage.GetInt(sight.moves) == moves) return;
  const auto found = std::ranges::find(ui.state.shown, ui.state.selected);
  if (found == ui.state.shown.end()) return;
  storage.SetInt(sight.moves, moves);
  const auto place = static_cast<int>(found - ui.state.shown.begin());
  const int first = storage.GetInt(sight.first);
  const int end = storage.GetInt(sight.end);
  if (end == 0 || (place >= first && place < end)) return;
  const int above = std::max(0, place - (end - first) / 3);
  ImGui::SetNextWindowScroll({-1, static_cast<float>(above) * row_height});
}

/// A line around the row of the table that is being drawn.
void outline_row(Ui& ui, std::string_view hex, float alpha) {
  const ImGuiTable& table = *ImGui::GetCurrentTable();
  const float top = table.RowPosY1;
  const float bottom = top + ImGui::GetTextLineHeight() + 2 * table.RowCellPaddingY;
  ImGui::GetWindowDrawList()->AddRect({table.WorkRect.Min.x, top}, {table.WorkRect.Max.x, bottom},
                                      ui.ink(hex, alpha), ui.units(2), ui.units(1));
}

/// Rows with a simulated step end here, and those of the step-time model begin.
bool is_last_simulated(const AppState& state, std::size_t place) {
  const auto simulated = [&](std::size_t at) {
    return at < state.shown.size() && state.answer.rows[state.shown[at]].simulated.has_value();
  };
  return state.explore.sort.empty() && simulated(place) && !simulated(place + 1);
}

void underline_row(Ui& ui) {
  const ImGuiTable& table = *ImGui::GetCurrentTable();
  const float bottom = table.RowPosY1 + ImGui::GetTextLineHeight() + 2 * table.RowCellPaddingY;
  const ImVec2 least(table.WorkRect.Min.x, bottom - ui.units(1));
  const ImVec2 most(table.WorkRect.Max.x, bottom);
  // In the window's list, which is not clipped to the last cell.
  ImGui::GetWindowDrawList()->PushClipRect(table.InnerClipRect.Min, table.InnerClipRect.Max);
  ImGui::GetWindowDrawList()->AddRectFilled(least, most, ui.ink(ui.theme.quiet));
  ImGui::GetWindowDrawList()->PopClipRect();
  ui.probes.put("explorer.simulated", least, most);
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

void draw_layout_row(Ui& ui, std::size_t place, const std::vector<std::size_t>& shown) {
  const std::uint32_t index = ui.state.shown[place];
  const LayoutRow& row = ui.state.answer.rows[index];
  const sim::PricedLayout cells = priced(ui.state.answer, row);
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
      if (selected) ui.probes.put_item("explorer.selected");
      if (ui.state.exploring.ghost && index == ui.state.exploring.ghost->row) {
        outline_row(ui, ui.theme.quiet, 1);
        ui.probes.put_item("explorer.ghost");
      }
      ImGui::SetCursorPos(at);
      first = false;
    }
    const bool memory = c == memory_column();
    const ImVec2 cell = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    ui.probes.explain(fmt::format("column.{}", column.key), cell,
                      {cell.x + width, cell.y + ImGui::GetTextLineHeight()});
    number_right(ui, column.text(cells),
                 memory && row.fit != Fit::fits
                     ? (row.fit == Fit::at_risk ? ui.theme.warning : ui.theme.bad)
                     : ink);
    if (!memory) continue;
    if (ImGui::TableNextColumn()) draw_memory_bar(ui, index, probe);
  }
  if (is_last_simulated(ui.state, place)) underline_row(ui);
  ImGui::PopID();
}

/// Which columns are shown.
void draw_columns_menu(Ui& ui, const std::vector<std::size_t>& shown) {
  if (!ImGui::BeginPopup("columns")) return;
  for (std::size_t c = 0; c < columns().size(); ++c) {
    const Column& column = columns()[c];
    bool on = std::ranges::find(shown, c) != shown.end();
    if (ImGui::Checkbox(std::string(column.meaning).c_str(), &on)) {
      std::string keys;
      for (std::size_t other = 0; other < columns().size(); ++other) {
        const bool kept = other == c ? on : std::ranges::find(shown, other) != shown.end();
        if (kept) keys += fmt::format(" {}", columns()[other].key);
      }
      ui.want("table.columns" + keys);
    }
    ui.probes.put_item(fmt::format("explorer.column.{}", column.key));
  }
  if (toggle(ui, "explorer.column.usual", "those that tell something",
             ui.state.explore.columns.empty())) {
    ui.want("table.columns");
  }
  ImGui::EndPopup();
}

void draw_table_controls(Ui& ui, const std::vector<std::size_t>& shown) {
  const std::vector<std::string> words = {"fitting", "degrees", "columns"};
  const float width = segments_width(ui, words) + ui.units(6);
  std::array<char, 256> typed{};
  ui.state.explore.filter_text.copy(typed.data(), typed.size() - 1);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - width);
  if (ImGui::InputTextWithHint("##filter", "filter, as  tp<=8 mfu>40 zero:1   ( / )", typed.data(),
                               typed.size())) {
    ui.want(fmt::format("table.filter {}", typed.data()));
  }
  ui.probes.put_item("explorer.filter");
  ImGui::SameLine(0, ui.units(6));
  ImGui::PushStyleVarX(ImGuiStyleVar_ItemSpacing, ui.units(2));
  if (toggle(ui, "explorer.fitting", words[0], ui.state.explore.only_fitting)) {
    ui.want("table.fitting");
  }
  ImGui::SetItemTooltip("only layouts that fit");
  ImGui::SameLine();
  if (toggle(ui, "explorer.degrees", words[1], ui.state.explore.one_of_degrees)) {
    ui.want("table.degrees");
  }
  ImGui::SetItemTooltip("the best layout of each set of degrees");
  ImGui::SameLine();
  if (toggle(ui, "explorer.columns", words[2], !ui.state.explore.columns.empty())) {
    ImGui::OpenPopup("columns");
  }
  ImGui::PopStyleVar();
  draw_columns_menu(ui, shown);
  if (!ui.state.explore.parsed.problem.empty()) {
    text(ui, ui.state.explore.parsed.problem, ui.theme.warning);
    ui.probes.put_item("explorer.problem");
  }
}

/// Where nothing fits, the way out.
void draw_way_out(Ui& ui) {
  if (!ui.state.current() || ui.state.answer.counts.fit > 0) return;
  ImGui::PushTextWrapPos(0);
  const std::string& problem = ui.state.answer.problem;
  const std::string& words = problem.empty() ? ui.state.exploring.way_out : problem;
  text(ui, words.empty() ? "nothing fits: looking for a way out …" : words, ui.theme.bad);
  ImGui::PopTextWrapPos();
  ui.probes.put_item("explorer.way_out");
}

const std::vector<std::string> kTakenAlong = {"copy command", "copy JSON"};

/// What is left of the line below the table for words.
float room_of_words(Ui& ui) {
  return ImGui::GetContentRegionAvail().x - segments_width(ui, kTakenAlong) - ui.units(10);
}

/// What is wrong with the selected layout; empty of one that fits.
std::string misfit_of(Ui& ui) {
  const std::size_t row = ui.state.selected;
  if (row >= ui.state.answer.rows.size()) return "";
  std::string said = misfit_text(ui.state.answer.rows[row], ui.state.answer.usable);
  // Where nothing fits the way out stands above the table, and this row's would be another.
  if (said.empty() || ui.state.answer.counts.fit == 0) return said;
  ui.fix_row = static_cast<std::uint32_t>(row);
  const std::optional<RowFix>& fix = ui.state.exploring.fix;
  if (fix && fix->layout == ui.state.answer.rows[row].layout && !fix->text.empty()) {
    said += "; cheapest change that fits: " + fix->text;
  }
  return said;
}

/// That, and the ways to take the layout along.
void draw_selected_layout(Ui& ui, const std::string& said) {
  ImGui::AlignTextToFramePadding();
  const float room = room_of_words(ui);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (said.empty()) {
    text(ui, fitting(ui, layout_text(ui.state.plan.layout), room), ui.theme.quiet);
  } else {
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
    text(ui, said, ui.theme.bad);
    ImGui::PopTextWrapPos();
    ImGui::SetItemTooltip("%s", said.c_str());
    ui.probes.put_item("explorer.misfit");
    explain(ui, "column.memory");
  }
  ImGui::SetCursorScreenPos({at.x + room + ui.units(10), at.y});
  const int clicked = segments(ui, "explorer", kTakenAlong, -1);
  if (clicked >= 0) ui.want(clicked == 0 ? "export.command" : "export.json");
}

}  // namespace

void draw_explorer(Ui& ui) {
  heading(ui, "Strategies", counts_text(ui.state.answer, ui.state.shown.size()));
  const std::vector<std::size_t>& chosen = ui.state.explore.columns;
  const std::vector<std::size_t> wanted =
      chosen.empty() ? telling_columns(ui.state.answer) : chosen;
  draw_table_controls(ui, wanted);
  draw_way_out(ui);
  if (ui.state.answer.rows.empty()) {
    text(ui, ui.state.current() ? "no layout is legal" : "searching …", ui.theme.quiet);
    return;
  }
  constexpr double kLeastBar = 70;
  constexpr double kBetween = 8;
  constexpr double kScrollbar = 14;
  const double room = ImGui::GetContentRegionAvail().x / ui.scale;
  const std::vector<std::size_t> shown =
      chosen.empty() ? columns_within(wanted, room, kBetween, kLeastBar + kBetween + kScrollbar)
                     : chosen;
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_NoSavedSettings | ImGuiTableFlags_NoBordersInBody;
  const bool bars = std::ranges::find(shown, memory_column()) != shown.end();
  const float row_height = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
  follow_selected(ui, row_height);
  const std::string said = misfit_of(ui);
  const float words = ImGui::CalcTextSize(said.c_str(), nullptr, false, room_of_words(ui)).y;
  const ImGuiStyle& style = ImGui::GetStyle();
  const float footer =
      std::max(ImGui::GetFrameHeight(), words + style.FramePadding.y) + style.ItemSpacing.y;
  ImGui::PushStyleVarX(ImGuiStyleVar_CellPadding, ui.units(4));
  const bool begun = ImGui::BeginTable("rows", static_cast<int>(shown.size()) + (bars ? 1 : 0),
                                       flags, {0, -footer});
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
  if (ui.state.shown.empty()) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_text(ui, ImGui::GetCursorScreenPos(), "no row matches", ui.ink(ui.theme.quiet));
    ImGui::Dummy({1, ImGui::GetTextLineHeight()});
    ui.probes.put_item("explorer.empty");
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ui.state.shown.size()));
  while (clipper.Step()) {
    for (int place = clipper.DisplayStart; place < clipper.DisplayEnd; ++place) {
      ui.visible_rows.push_back(ui.state.shown[static_cast<std::size_t>(place)]);
      draw_layout_row(ui, static_cast<std::size_t>(place), shown);
    }
  }
  const float sight = ImGui::GetWindowHeight() - row_height;  // below the header
  const auto first = static_cast<int>(std::ceil(ImGui::GetScrollY() / row_height));
  const auto end = static_cast<int>((ImGui::GetScrollY() + sight) / row_height);
  ImGui::EndTable();
  ImGui::GetStateStorage()->SetInt(Sight().first, first);
  ImGui::GetStateStorage()->SetInt(Sight().end, std::max(first + 1, end));
  draw_selected_layout(ui, said);
}

}  // namespace shardwise::view
