#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/scaling/scaling_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr float kGap = 2;
constexpr float kDotEnd = 12;     // of the mark of a row's cheapest cell, from the cell's left edge
constexpr float kHeatRamp = 120;  // width of the legend's colours

/// The cells' places on the screen.
struct HeatGrid {
  ImVec2 first;  // left top of the first cell
  ImVec2 cell;
  std::size_t columns = 1;

  ImVec2 least(std::size_t at) const {
    const std::size_t column = at % columns;
    const std::size_t row = at / columns;
    return {first.x + static_cast<float>(column) * cell.x,
            first.y + static_cast<float>(row) * cell.y};
  }
};

std::vector<std::string> words_of(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

/// The menus of rows and colour, beside one another where there is room.
void draw_menus(Ui& ui) {
  const ScalingState& scaling = ui.state.scaling;
  const std::vector<std::string> rows = words_of(kScalingRows);
  const std::vector<std::string> colours = words_of(kScalingColours);
  const float wide = segments_width(ui, rows) + segments_width(ui, colours) + ui.units(24);
  const bool one_line = wide < ImGui::GetContentRegionAvail().x;
  const int row = segments(ui, "scaling.rows", rows, static_cast<int>(scaling.rows));
  if (row >= 0) ui.want("scaling.rows " + rows[static_cast<std::size_t>(row)]);
  if (one_line) ImGui::SameLine(0, ui.units(20));
  const int colour = segments(ui, "scaling.colour", colours, static_cast<int>(scaling.colour));
  if (colour >= 0) ui.want("scaling.colour " + colours[static_cast<std::size_t>(colour)]);
}

/// What colours and marks mean, and how far the map is.
void draw_heat_legend(Ui& ui) {
  const ScalingState& scaling = ui.state.scaling;
  const auto [worst, best] = colour_ends(scaling.map, scaling.colour);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  float x = at.x;
  const auto word = [&](const std::string& words, std::string_view hex) {
    draw_text(ui, {x, at.y}, words, ui.ink(hex));
    x += ImGui::CalcTextSize(words.c_str()).x + ui.units(6);
  };
  word(std::string(colour_heading(scaling.colour)), ui.theme.text);
  word(worst, ui.theme.quiet);
  const float step = ui.units(kHeatRamp) / static_cast<float>(sim::kHeatSteps);
  for (const std::string_view each : sim::kHeat[static_cast<std::size_t>(ui.theme.ground)]) {
    ImGui::GetWindowDrawList()->AddRectFilled({x, at.y + ui.units(3)},
                                              {x + step, at.y + line - ui.units(1)}, ui.ink(each));
    x += step;
  }
  x += ui.units(6);
  word(best, ui.theme.quiet);
  ImGui::Dummy({x - at.x, line});
  const std::string known =
      fmt::format("{} of {} searched", scaling.map.known(), scaling.map.cells.size());
  const std::string button = scaling.paused ? "go on" : "stop";
  const bool left = scaling.map.next().has_value();
  const float room = ImGui::CalcTextSize((known + button).c_str()).x + ui.units(40);
  if (x + room < at.x + ImGui::GetContentRegionAvail().x) ImGui::SameLine(0, ui.units(14));
  if (!left) return text(ui, "all searched", ui.theme.quiet);
  text(ui, known, ui.theme.quiet);
  ImGui::SameLine();
  if (ImGui::SmallButton(button.c_str())) ui.want("scaling.pause");
  ui.probes.put_item("scaling.pause");
}

/// A cell's words in its middle, right of `taken` at its left edge. Their ground hides a line that
/// crosses the cell.
void draw_cell_words(Ui& ui, ImVec2 least, ImVec2 cell, float taken, const std::string& words,
                     std::string_view hex, std::optional<std::string_view> ground) {
  const float width = ImGui::CalcTextSize(words.c_str()).x;
  const float line = ImGui::GetTextLineHeight();
  if (width > cell.x - taken - ui.units(2) || line > cell.y) return;
  const ImVec2 at(std::max(least.x + taken, least.x + (cell.x - width) / 2),
                  least.y + (cell.y - line) / 2 - ui.units(1));
  if (ground) {
    const float edge = ui.units(2);
    ImGui::GetWindowDrawList()->AddRectFilled({at.x - edge, at.y},
                                              {at.x + width + edge, at.y + line}, ui.ink(*ground));
  }
  draw_text(ui, at, words, ui.ink(hex));
}

/// Strokes across a cell in which nothing fits.
void hatch(Ui& ui, ImVec2 least, ImVec2 most) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRect(least, most, true);
  const float step = ui.units(9);
  const float high = most.y - least.y;
  const int strokes = static_cast<int>((most.x - least.x + high) / step) + 1;
  for (int i = 0; i < strokes; ++i) {
    const float x = least.x - high + static_cast<float>(i) * step;
    list.AddLine({x, most.y}, {x + high, least.y}, ui.ink(ui.theme.raised), ui.units(1));
  }
  list.PopClipRect();
}

struct CellBox {
  ImVec2 least;
  ImVec2 most;
  ImVec2 size() const { return {most.x - least.x, most.y - least.y}; }
};

CellBox box_of(Ui& ui, const HeatGrid& grid, std::size_t at) {
  const ImVec2 least = grid.least(at);
  return {least, {least.x + grid.cell.x - ui.units(kGap), least.y + grid.cell.y - ui.units(kGap)}};
}

/// The colour that a cell has; nothing where it has no number.
std::optional<std::string_view> ground_of(Ui& ui, const ScalingPoint& point) {
  const ScalingState& scaling = ui.state.scaling;
  const std::optional<double> share = shade(scaling.map, point, scaling.colour);
  if (!share) return std::nullopt;
  return sim::heat(*share, ui.theme.ground);
}

void draw_ground(Ui& ui, const HeatGrid& grid, std::size_t at) {
  const ScalingMap& map = ui.state.scaling.map;
  const ScalingPoint& point = map.cells[at];
  const CellBox box = box_of(ui, grid, at);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const std::optional<std::string_view> ground = ground_of(ui, point);
  if (ground) {
    list.AddRectFilled(box.least, box.most, ui.ink(*ground), ui.units(2));
  } else {
    if (point.known) hatch(ui, box.least, box.most);
    list.AddRect(box.least, box.most, ui.ink(ui.theme.border), ui.units(2));
  }
  if (point.at_risk) {
    list.AddRectFilled({box.least.x, box.least.y}, {box.most.x, box.least.y + ui.units(3)},
                       ui.ink(ui.theme.warning));
  }
  ui.probes.put(fmt::format("scaling.cell.{}.{}", map.rows[at / grid.columns].value, point.gpus),
                box.least, box.most);
}

void draw_point_words(Ui& ui, const HeatGrid& grid, std::size_t at) {
  const ScalingPoint& point = ui.state.scaling.map.cells[at];
  const CellBox box = box_of(ui, grid, at);
  const std::optional<std::string_view> ground = ground_of(ui, point);
  const ScalingMap& map = ui.state.scaling.map;
  const bool marked = cheapest_column(map, at / grid.columns) == at % grid.columns;
  const float taken = ui.units(marked ? kDotEnd : 2);
  if (ground) {
    draw_cell_words(ui, box.least, box.size(), taken, colour_text(point, ui.state.scaling.colour),
                    sim::ink_on(*ground), ground);
  } else if (point.known) {
    draw_cell_words(ui, box.least, box.size(), taken, point.layout ? "no price" : point.why_short,
                    ui.theme.quiet, std::nullopt);
  }
}

/// The column with the cheapest tokens of each row, as a dot; a line joins them.
void draw_cheapest(Ui& ui, const HeatGrid& grid) {
  const ScalingMap& map = ui.state.scaling.map;
  std::vector<ImVec2> line;
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const std::optional<std::size_t> column = cheapest_column(map, row);
    if (!column) continue;
    const ImVec2 least = grid.least(row * grid.columns + *column);
    // Left of the numbers, and below where there is room, so that the line crosses none.
    const bool tall = grid.cell.y > 2.5F * ImGui::GetTextLineHeight();
    const float up = tall ? ui.units(10) : grid.cell.y / 2;
    line.emplace_back(least.x + ui.units(6), least.y + grid.cell.y - up);
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (std::size_t i = 1; i < line.size(); ++i) {
    list.AddLine(line[i - 1], line[i], ui.ink(ui.theme.panel, 0.5F), ui.units(1.5F));
  }
  for (std::size_t i = 0; i < line.size(); ++i) {
    const ImVec2& each = line[i];
    ui.probes.put(fmt::format("scaling.cheapest.{}", i),
                  {each.x - ui.units(4.5F), each.y - ui.units(4.5F)},
                  {each.x + ui.units(4.5F), each.y + ui.units(4.5F)});
    list.AddCircleFilled(each, ui.units(4.5F), ui.ink(ui.theme.panel));
    list.AddCircleFilled(each, ui.units(3.2F), ui.ink(ui.theme.warning));
  }
}

void draw_row_labels(Ui& ui, const HeatGrid& grid, float left) {
  const ScalingMap& map = ui.state.scaling.map;
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const ImVec2 least = grid.least(row * grid.columns);
    const float y = least.y + (grid.cell.y - ImGui::GetTextLineHeight()) / 2 - ui.units(1);
    ImGui::PushClipRect({left, least.y}, {grid.first.x - ui.units(4), least.y + grid.cell.y}, true);
    draw_text(ui, {left, y}, map.rows[row].label,
              ui.ink(row == map.row ? ui.theme.text : ui.theme.quiet));
    ImGui::PopClipRect();
  }
}

void draw_column_labels(Ui& ui, const HeatGrid& grid) {
  const ScalingMap& map = ui.state.scaling.map;
  for (std::size_t column = 0; column < map.gpus.size(); ++column) {
    const ImVec2 at = grid.least((map.rows.size() - 1) * grid.columns + column);
    draw_text(ui, {at.x + grid.cell.x / 2, at.y + grid.cell.y}, format_count(map.gpus[column]),
              ui.ink(column == map.column ? ui.theme.text : ui.theme.quiet), 0.5F);
  }
}

/// \returns the cell under the pointer, or as many as there are
std::size_t draw_cells(Ui& ui, const HeatGrid& grid) {
  const ScalingMap& map = ui.state.scaling.map;
  std::size_t hovered = map.cells.size();
  for (std::size_t at = 0; at < map.cells.size(); ++at) draw_ground(ui, grid, at);
  draw_cheapest(ui, grid);
  for (std::size_t at = 0; at < map.cells.size(); ++at) {
    draw_point_words(ui, grid, at);
    const ImVec2 least = grid.least(at);
    const bool here =
        ImGui::IsWindowHovered() &&
        ImGui::IsMouseHoveringRect(least, {least.x + grid.cell.x, least.y + grid.cell.y}, false);
    if (here) hovered = at;
  }
  const auto box = [&](std::size_t at, std::string_view hex) {
    const ImVec2 least = grid.least(at);
    ImGui::GetWindowDrawList()->AddRect(
        {least.x - ui.units(1), least.y - ui.units(1)},
        {least.x + grid.cell.x - ui.units(1), least.y + grid.cell.y - ui.units(1)}, ui.ink(hex),
        ui.units(3), ui.units(2));
  };
  box(map.row * grid.columns + map.column, ui.theme.text);
  if (hovered < map.cells.size()) box(hovered, ui.theme.accent);
  return hovered;
}

}  // namespace

void draw_heat(Ui& ui) {
  const ScalingState& scaling = ui.state.scaling;
  const ScalingMap& map = scaling.map;
  model_heading(ui, "Scaling map", "the best layout of each; a click takes it");
  draw_menus(ui);
  if (!map.plan || map.cells.empty()) return text(ui, "reading the catalogue …", ui.theme.quiet);
  draw_heat_legend(ui);
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImVec2 room = ImGui::GetContentRegionAvail();
  float labels = 0;
  for (const ScalingRow& each : map.rows) {
    labels = std::max(labels, ImGui::CalcTextSize(each.label.c_str()).x);
  }
  labels = std::min(labels + ui.units(8), room.x * 0.3F);
  room.y -= 2 * line + ui.units(4);
  HeatGrid grid;
  grid.columns = map.gpus.size();
  grid.first = {at.x + labels, at.y + ui.units(2)};
  grid.cell = {(room.x - labels) / static_cast<float>(map.gpus.size()),
               std::min(ui.units(80), room.y / static_cast<float>(map.rows.size()))};
  if (grid.cell.x < 2 || grid.cell.y < 2) {
    return text(ui, "the map needs a larger window", ui.theme.quiet);
  }
  const std::size_t hovered = draw_cells(ui, grid);
  draw_row_labels(ui, grid, at.x);
  draw_column_labels(ui, grid);
  const float below = grid.first.y + static_cast<float>(map.rows.size()) * grid.cell.y + line;
  draw_text(ui, {at.x, below},
            fmt::format("{} by GPUs, the dot is the cheapest of a row",
                        map.kind == ScalingRows::sequence ? "tokens of a sequence"
                        : map.kind == ScalingRows::batch  ? "sequences of a step"
                                                          : "models"),
            ui.ink(ui.theme.quiet));
  if (hovered == map.cells.size()) return;
  ImGui::SetTooltip("%s", cell_text(map, hovered).c_str());
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && map.cells[hovered].layout) {
    ui.want(fmt::format("scaling.take {} {}", map.cells[hovered].gpus,
                        map.rows[hovered / grid.columns].value));
  }
}

}  // namespace shardwise::view
