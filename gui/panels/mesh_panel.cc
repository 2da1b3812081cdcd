#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gui/models/mesh/mesh_state.h"
#include "gui/panels/panels.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr float kMostCell = 64;
constexpr float kNodeGap = 10;
constexpr float kNodeName = 13;        // size of its letters, and of the line they are in
constexpr float kMeshRamp = 100;       // width of the legend's colours
constexpr float kBoxLineAlpha = 0.7F;  // alpha of the line around a box

/// By kShownGroups.
constexpr std::array kGroupPaint = {sim::Paint::layer,    sim::Paint::copy,   sim::Paint::recompute,
                                    sim::Paint::backward, sim::Paint::weight, sim::Paint::reduce};
static_assert(kGroupPaint.size() == kShownGroups.size());

/// Boxes of nodes in lines, as large as they can be.
struct Grid {
  ImVec2 first;
  int columns = 1;  // of nodes
  int inside = 1;   // boxes of a node beside one another
  int high = 1;     // and below one another
  float cell = 0;
  float gap = 0;   // between nodes
  float name = 0;  // height of a node's name above it

  ImVec2 node(std::int64_t at) const {
    const auto column = static_cast<float>(at % columns);
    const std::int64_t line = at / columns;
    const float width = static_cast<float>(inside) * cell + gap;
    const float height = static_cast<float>(high) * cell + gap + name;
    return {first.x + column * width, first.y + static_cast<float>(line) * height};
  }
  ImVec2 box(std::int64_t at) const {
    const std::int64_t boxes = std::int64_t{inside} * high;
    const std::int64_t within = at % boxes;
    const std::int64_t line = within / inside;
    const ImVec2 corner = node(at / boxes);
    return {corner.x + static_cast<float>(within % inside) * cell,
            corner.y + name + static_cast<float>(line) * cell};
  }
};

Grid grid_of(Ui& ui, const MeshView& mesh, ImVec2 first, ImVec2 room) {
  Grid best;
  best.first = first;
  best.gap = ui.units(mesh.whole_nodes ? 1 : mesh.nodes() > 256 ? 4 : kNodeGap);
  const std::int64_t boxes = mesh.whole_nodes ? 1 : std::min(mesh.per_node, mesh.ranks);
  const std::int64_t nodes = mesh.nodes();
  constexpr std::int64_t kMostNamed = 32;
  if (!mesh.whole_nodes && nodes > 1 && nodes <= kMostNamed) best.name = ui.units(kNodeName);
  for (std::int64_t inside = boxes; inside >= 1; --inside) {
    if (boxes % inside != 0) continue;
    const std::int64_t high = boxes / inside;
    if (high > inside) break;
    for (std::int64_t columns = 1; columns <= std::min<std::int64_t>(nodes, 160); ++columns) {
      const std::int64_t lines = (nodes + columns - 1) / columns;
      const auto across = static_cast<float>(columns * inside);
      const auto down = static_cast<float>(lines * high);
      const float wide = (room.x - static_cast<float>(columns) * best.gap) / across;
      const float tall = (room.y - static_cast<float>(lines) * (best.gap + best.name)) / down;
      const float cell = std::min({wide, tall, ui.units(kMostCell)});
      if (cell <= best.cell) continue;
      best.cell = cell;
      best.columns = static_cast<int>(columns);
      best.inside = static_cast<int>(inside);
      best.high = static_cast<int>(high);
    }
  }
  return best;
}

/// Colour of the boxes: a menu, and what the lightest and the darkest mean.
void draw_colours(Ui& ui) {
  const MeshState& mesh = ui.state.mesh;
  const int chosen = segments(ui, "mesh.colour", {kMeshColours.begin(), kMeshColours.end()},
                              static_cast<int>(mesh.colour));
  if (chosen >= 0) {
    ui.want(fmt::format("mesh.colour {}", kMeshColours[static_cast<std::size_t>(chosen)]));
  }
  std::array<std::string, 2> ends = {"stage 0", fmt::format("stage {}", mesh.view.stages - 1)};
  std::string note;
  if (mesh.colour != MeshColour::stage) {
    if (!mesh.facts) return text(ui, "simulating …", ui.theme.quiet);
    if (!mesh.facts->problem.empty()) return text(ui, mesh.facts->problem, ui.theme.warning);
    ends = stage_ends(*mesh.facts, mesh.colour);
    note = mesh.colour == MeshColour::time
               ? fmt::format("computing, stage {} longest", mesh.facts->slowest)
           : mesh.colour == MeshColour::memory ? "peak of a GPU"
                                               : "sent by a GPU in a step";
  } else if (mesh.view.stages == 1) {
    return text(ui, "one pipeline stage", ui.theme.quiet);
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  float x = at.x;
  const auto word = [&](const std::string& words) {
    draw_text(ui, {x, at.y}, words, ui.ink(ui.theme.quiet));
    x += ImGui::CalcTextSize(words.c_str()).x + ui.units(8);
  };
  word(ends[0]);
  // As many colours as boxes can have.
  const std::size_t stages = static_cast<std::size_t>(mesh.view.stages);
  const std::size_t colours =
      mesh.colour == MeshColour::time ? sim::kHeatSteps : std::min(stages, sim::kHeatSteps);
  const float step = ui.units(kMeshRamp) / static_cast<float>(sim::kHeatSteps);
  for (std::size_t i = 0; i < colours; ++i) {
    const double share =
        colours > 1 ? static_cast<double>(i) / static_cast<double>(colours - 1) : 0;
    ImGui::GetWindowDrawList()->AddRectFilled({x, at.y + ui.units(3)},
                                              {x + step, at.y + line - ui.units(1)},
                                              ui.ink(sim::heat(share, ui.theme.ground)));
    x += step;
  }
  ImGui::GetWindowDrawList()->AddRect({x - step * static_cast<float>(colours), at.y + ui.units(3)},
                                      {x, at.y + line - ui.units(1)},
                                      ui.ink(ui.theme.quiet, kBoxLineAlpha));
  x += ui.units(8);
  word(ends[1]);
  word(note);
  ImGui::Dummy({x - at.x, line});
}

/// Words and colours of the groups that a rank of this layout has.
void draw_groups_legend(Ui& ui, const std::vector<RankGroup>& groups) {
  if (groups.empty()) {
    return text(ui, "the pointer on a GPU shows its groups, a click keeps them", ui.theme.quiet);
  }
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (const RankGroup& group : groups) {
    entries.emplace_back(fmt::format("{} {}", kShownGroups[group.shown].label, group.ranks.size()),
                         ui.theme.of(kGroupPaint[group.shown]));
  }
  legend(ui, entries);
}

void draw_rank_box(Ui& ui, const Grid& grid, std::size_t at, const std::string& ground) {
  const MeshView& mesh = ui.state.mesh.view;
  const ImVec2 least = grid.box(static_cast<std::int64_t>(at));
  const float gap = std::min(ui.units(2), grid.cell * 0.15F);
  const ImVec2 most(least.x + grid.cell - gap, least.y + grid.cell - gap);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float round = std::min(ui.units(2), grid.cell * 0.2F);
  list.AddRectFilled(least, most, ui.ink(ground), round);
  // The lowest shade is hardly another than the panel's: a line has the contrast that it lacks.
  if (grid.cell > ui.units(8))
    list.AddRect(least, most, ui.ink(ui.theme.quiet, kBoxLineAlpha), round);
  if (ImGui::GetTextLineHeight() + ui.units(4) < grid.cell) {
    const MeshBox& box = mesh.boxes[at];
    const std::string number = box.stage == box.last_stage
                                   ? fmt::format("{}", box.stage)
                                   : fmt::format("{}-{}", box.stage, box.last_stage);
    const ImVec2 letters = ImGui::CalcTextSize(number.c_str());
    if (letters.x + ui.units(8) < grid.cell) {
      draw_text(ui, {(least.x + most.x) / 2, (least.y + most.y - letters.y) / 2}, number,
                ui.ink(sim::ink_on(ground)), 0.5F);
    }
  }
  ui.probes.put(fmt::format("mesh.{}.{}", mesh.whole_nodes ? "node" : "rank", at), least, most);
}

void draw_node_names(Ui& ui, const Grid& grid, std::int64_t nodes) {
  if (grid.name <= 0) return;
  ImGui::PushFont(nullptr, kNodeName - 1);
  const float width = static_cast<float>(grid.inside) * grid.cell;
  for (std::int64_t node = 0; node < nodes; ++node) {
    const ImVec2 at = grid.node(node);
    std::string name = fmt::format("node {}", node);
    if (ImGui::CalcTextSize(name.c_str()).x > width) name = fmt::format("{}", node);
    draw_text(ui, at, name, ui.ink(ui.theme.quiet));
    ui.probes.put(fmt::format("mesh.name.{}", node), at, {at.x + width, at.y + grid.name});
  }
  ImGui::PopFont();
}

/// A frame around each box of a group that is not the rank's own.
void frame_group(Ui& ui, const Grid& grid, const RankGroup& group, std::size_t own) {
  const MeshView& mesh = ui.state.mesh.view;
  const ImU32 ink = ui.ink(ui.theme.of(kGroupPaint[group.shown]));
  const float gap = std::min(ui.units(2), grid.cell * 0.15F);
  const float thick = std::clamp(grid.cell * 0.12F, ui.units(1.5F), ui.units(4));
  for (const std::int64_t rank : group.ranks) {
    const std::size_t at = mesh.box_of(rank);
    const ImVec2 least = grid.box(static_cast<std::int64_t>(at));
    const ImVec2 most(least.x + grid.cell - gap, least.y + grid.cell - gap);
    ui.probes.put(fmt::format("mesh.group.{}.{}", name_of(kShownGroups[group.shown].axis), rank),
                  least, most);
    if (at == own) continue;
    const float in = thick / 2;
    ImGui::GetWindowDrawList()->AddRect({least.x + in, least.y + in}, {most.x - in, most.y - in},
                                        ink, ui.units(2), thick);
  }
}

/// \returns the box under the pointer, or as many as there are
std::size_t hovered_box(const Grid& grid, const MeshView& mesh) {
  if (!ImGui::IsWindowHovered()) return mesh.boxes.size();
  for (std::size_t at = 0; at < mesh.boxes.size(); ++at) {
    const ImVec2 least = grid.box(static_cast<std::int64_t>(at));
    const ImVec2 most(least.x + grid.cell, least.y + grid.cell);
    if (ImGui::IsMouseHoveringRect(least, most)) return at;
  }
  return mesh.boxes.size();
}

/// The boxes that the rank communicates with.
std::vector<bool> members(const MeshView& mesh, const std::vector<RankGroup>& groups,
                          std::int64_t rank) {
  std::vector<bool> in(mesh.boxes.size(), false);
  in[mesh.box_of(rank)] = true;
  for (const RankGroup& group : groups) {
    for (const std::int64_t each : group.ranks) in[mesh.box_of(each)] = true;
  }
  return in;
}

}  // namespace

void draw_mesh(Ui& ui) {
  const MeshState& state = ui.state.mesh;
  const MeshView& mesh = state.view;
  heading(
      ui, "Mesh",
      fmt::format("{} GPU{} on {} node{}, a box a {}, the number is the pipeline stage",
                  format_count(mesh.ranks), mesh.ranks == 1 ? "" : "s", format_count(mesh.nodes()),
                  mesh.nodes() == 1 ? "" : "s", mesh.whole_nodes ? "node" : "GPU"));
  if (mesh.boxes.empty()) return;
  draw_colours(ui);
  // Room for the legend of the groups, whatever rank it is of.
  const std::vector<RankGroup> some = groups_of(ui.state.plan.layout, state.pinned.value_or(0));
  draw_groups_legend(ui, some);
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const Grid grid = grid_of(ui, mesh, begin, ImGui::GetContentRegionAvail());
  if (grid.cell < 1) return;
  const std::size_t hovered = hovered_box(grid, mesh);
  std::optional<std::int64_t> rank = state.pinned;
  if (hovered < mesh.boxes.size()) rank = mesh.boxes[hovered].rank;
  std::vector<RankGroup> groups;
  std::vector<bool> lit(mesh.boxes.size(), true);
  if (rank) {
    groups = groups_of(ui.state.plan.layout, *rank);
    lit = members(mesh, groups, *rank);
  }
  const bool known = state.facts && !state.facts->stages.empty();
  const std::vector<double> shades =
      box_shades(mesh, known ? state.facts.get() : nullptr, state.colour);
  constexpr float kDim = 0.3F;
  for (std::size_t at = 0; at < mesh.boxes.size(); ++at) {
    // Digits of a dimmed box are readable, too: its ground is another, and the ink suits that.
    const std::string_view heat = sim::heat(shades[at], ui.theme.ground);
    draw_rank_box(ui, grid, at,
                  lit[at] ? std::string(heat) : sim::mixed(heat, kDim, ui.theme.panel));
  }
  draw_node_names(ui, grid, mesh.nodes());
  if (!rank) return;
  const std::size_t own = mesh.box_of(*rank);
  for (const RankGroup& group : groups) frame_group(ui, grid, group, own);
  const ImVec2 least = grid.box(static_cast<std::int64_t>(own));
  ImGui::GetWindowDrawList()->AddRect(
      {least.x - ui.units(1), least.y - ui.units(1)},
      {least.x + grid.cell - ui.units(1), least.y + grid.cell - ui.units(1)}, ui.ink(ui.theme.text),
      ui.units(2), ui.units(3));
  if (hovered == mesh.boxes.size()) return;
  std::string words = rank_text(mesh, ui.state.plan.layout, *rank);
  if (known) {
    const auto stage = static_cast<std::size_t>(mesh.boxes[hovered].stage);
    words += fmt::format("\ncomputes {} of {}, peak {}",
                         format_seconds(computing_of(*state.facts, mesh.boxes[hovered])),
                         format_seconds(state.facts->step),
                         stage_text(*state.facts, MeshColour::memory, stage));
  }
  ImGui::SetTooltip("%s", words.c_str());
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    const bool again = state.pinned == rank;
    ui.want(again ? "mesh.rank" : fmt::format("mesh.rank {}", *rank));
  }
}

}  // namespace shardwise::view
