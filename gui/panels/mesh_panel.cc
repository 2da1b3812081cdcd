#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/mesh_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/format.h"

namespace shardwise::view {
namespace {

constexpr float kMostCell = 56;
constexpr float kGap = 2;
constexpr float kNodeGap = 10;

/// Columns of nodes that leave cells as large as they can be.
struct Grid {
  int columns = 1;
  float cell = 1;
};

Grid grid_of(Ui& ui, std::int64_t nodes, int cells_of_node, ImVec2 room) {
  Grid best;
  best.cell = 0;
  for (int columns = 1; columns <= std::min<std::int64_t>(nodes, 64); ++columns) {
    const std::int64_t lines = (nodes + columns - 1) / columns;
    const auto rows = static_cast<float>(lines);
    const auto across = static_cast<float>(columns * cells_of_node);
    const float wide = (room.x - static_cast<float>(columns) * ui.units(kNodeGap)) / across;
    const float high = room.y / rows - ui.units(kNodeGap);
    const float cell = std::min({wide, high, ui.units(kMostCell)});
    if (cell > best.cell) best = {columns, cell};
  }
  return best;
}

ImU32 stage_ink(Ui& ui, std::int32_t stage, std::int32_t stages) {
  constexpr std::array<sim::Paint, 8> kRamp = {
      sim::Paint::forward, sim::Paint::recompute, sim::Paint::gather,   sim::Paint::optimizer,
      sim::Paint::layer,   sim::Paint::weight,    sim::Paint::backward, sim::Paint::reduce};
  const std::size_t at =
      stages <= 8 ? static_cast<std::size_t>(stage) : static_cast<std::size_t>(8 * stage / stages);
  return ui.ink(ui.theme.of(kRamp[std::min<std::size_t>(at, 7)]));
}

void outline(Ui& ui, const std::vector<ImVec2>& places, const std::vector<std::int64_t>& ranks,
             float cell, std::string_view hex, float inset) {
  for (const std::int64_t rank : ranks) {
    const ImVec2 at = places[static_cast<std::size_t>(rank)];
    const float in = ui.units(inset);
    ImGui::GetWindowDrawList()->AddRect(
        {at.x + in, at.y + in}, {at.x + cell - in, at.y + cell - in}, ui.ink(hex), 0, ui.units(2));
  }
}

}  // namespace

void draw_mesh(Ui& ui) {
  const MeshView& mesh = ui.state.mesh;
  const bool each = !mesh.stage.empty();
  heading(ui, "Mesh",
          fmt::format("{} GPUs on {} nodes, colour and number are the pipeline stage{}",
                      format_count(mesh.ranks), format_count(mesh.nodes()),
                      each ? ", a box a GPU" : ", a box a node"));
  if (!each) text(ui, "too many GPUs to draw each: a box is a node", ui.theme.quiet);
  legend(ui, {{"hovered GPU's tensor parallel group", ui.theme.text},
              {"its pipeline", ui.theme.warning},
              {"its data and context parallel group", ui.theme.good}});
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const int cells = each ? static_cast<int>(std::min(mesh.per_node, mesh.ranks)) : 1;
  const Grid grid = grid_of(ui, mesh.nodes(), cells, room);
  if (grid.cell < 1) return;
  const float node_width = static_cast<float>(cells) * grid.cell + ui.units(kNodeGap);
  const float node_height = grid.cell + ui.units(kNodeGap);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  std::vector<ImVec2> places;
  std::int64_t hovered = -1;
  const std::int64_t boxes = each ? mesh.ranks : mesh.nodes();
  for (std::int64_t box = 0; box < boxes; ++box) {
    const std::int64_t node = each ? box / mesh.per_node : box;
    const auto column = static_cast<float>(node % grid.columns);
    const std::int64_t line = node / grid.columns;
    const auto row = static_cast<float>(line);
    const auto inside = static_cast<float>(each ? box % mesh.per_node : 0);
    const ImVec2 at(begin.x + column * node_width + inside * grid.cell,
                    begin.y + row * node_height);
    places.push_back(at);
    const float gap = std::min(ui.units(kGap), grid.cell * 0.15F);
    const ImVec2 end(at.x + grid.cell - gap, at.y + grid.cell - gap);
    const std::int32_t stage = each ? mesh.stage[static_cast<std::size_t>(box)] : 0;
    list.AddRectFilled(at, end, each ? stage_ink(ui, stage, mesh.stages) : ui.ink(ui.theme.accent),
                       ui.units(2));
    const std::string number = fmt::format("{}", stage);
    const float letters = ImGui::CalcTextSize(number.c_str()).x;
    if (each && grid.cell > letters + ui.units(10) &&
        grid.cell > ImGui::GetTextLineHeight() + ui.units(8)) {
      draw_text(ui, {(at.x + end.x) / 2, (at.y + end.y - ImGui::GetTextLineHeight()) / 2}, number,
                ui.ink(sim::kDarkInk), 0.5F);
    }
    ui.probes.put(fmt::format("mesh.{}.{}", each ? "rank" : "node", box), at, end);
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(at, end)) hovered = box;
  }
  if (hovered < 0 || !each) return;
  const RankGroups groups = groups_of(ui.state.plan.layout, hovered);
  outline(ui, places, groups.dp, grid.cell, ui.theme.good, 0);
  outline(ui, places, groups.pp, grid.cell, ui.theme.warning, 1);
  outline(ui, places, groups.tp, grid.cell, ui.theme.text, 2);
  ImGui::SetTooltip("%s", rank_text(mesh, ui.state.plan.layout, hovered).c_str());
}

void draw_axes(Ui& ui) {
  heading(ui, "Communication by axis", "of a step, on the slowest stage");
  if (ui.state.report.by_axis.empty()) {
    text(ui, "one GPU communicates with nobody", ui.theme.quiet);
    return;
  }
  Seconds most;
  for (const AxisTime& axis : ui.state.report.by_axis) most = std::max(most, axis.total);
  for (const AxisTime& axis : ui.state.report.by_axis) {
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
    ui.probes.put("axes." + axis.axis, {left, at.y}, {left + reach(axis.total), at.y + height});
    ImGui::Dummy({0, height + ui.units(4)});
  }
}

}  // namespace shardwise::view
