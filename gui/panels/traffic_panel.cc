#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gui/models/mesh/mesh_state.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

/// The stage that is looked at: of the pinned rank, or else the slowest.
std::size_t stage_shown(Ui& ui) {
  const MeshState& mesh = ui.state.mesh;
  if (!mesh.pinned) return mesh.facts->slowest;
  return static_cast<std::size_t>(mesh.view.boxes[mesh.view.box_of(*mesh.pinned)].stage);
}

/// A number with a bar under it, as long as its share of the column's total.
void number_cell(Ui& ui, Bytes bytes, Bytes total, std::string_view hex) {
  ImGui::TableNextColumn();
  if (bytes == Bytes(0)) return number_right(ui, "-", ui.theme.quiet);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float share =
      static_cast<float>(static_cast<double>(bytes.value()) / static_cast<double>(total.value()));
  const float y = at.y + ImGui::GetTextLineHeight() + ui.units(1);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x + width * (1 - share), y},
                                            {at.x + width, y + ui.units(2)}, ui.ink(hex));
  number_right(ui, format_bytes(bytes), ui.theme.text);
}

void draw_rows(Ui& ui, const TrafficTable& table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TrafficRow& row = table.rows[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text(ui, row.use, ui.theme.text);
    ui.probes.put_item(fmt::format("traffic.row.{}", i + 1));
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip(
          "bytes of the step's collectives that a GPU sends over each link:\n"
          "docs/simulator.md, Links. They sum to what `simulate` reports.");
    }
    ImGui::TableNextColumn();
    wrapped_text(ui, fmt::format("{}, {}", row.group, format_count(row.ranks)), ui.theme.quiet);
    for (std::size_t tier = 0; tier < row.bytes.size(); ++tier) {
      number_cell(ui, row.bytes[tier], table.totals[tier], ui.theme.of(sim::Paint::gather));
    }
  }
}

void draw_links(Ui& ui) {
  const MeshState& mesh = ui.state.mesh;
  const bool known = mesh.facts && !mesh.facts->stages.empty();
  heading(ui, "Links",
          known ? fmt::format("sent by a GPU of stage {} in a step", stage_shown(ui)) : "");
  if (!mesh.facts) return text(ui, "simulating …", ui.theme.quiet);
  if (!known) return text(ui, mesh.facts->problem, ui.theme.warning);
  const TrafficTable table = traffic_table(ui.state.plan, *mesh.facts, stage_shown(ui));
  if (table.tiers.empty()) return text(ui, "a GPU of it sends nothing", ui.theme.quiet);
  const int columns = 2 + static_cast<int>(table.tiers.size());
  if (!ImGui::BeginTable("traffic", columns,
                         ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp)) {
    return;
  }
  ImGui::TableSetupColumn("use", ImGuiTableColumnFlags_None, 1.4F);
  ImGui::TableSetupColumn("group", ImGuiTableColumnFlags_None, 1.2F);
  for (const std::string& tier : table.tiers) {
    ImGui::TableSetupColumn(tier.c_str(), ImGuiTableColumnFlags_None, 1);
  }
  ImGui::TableNextColumn();
  text(ui, "use", ui.theme.quiet);
  ImGui::TableNextColumn();
  text(ui, "within, ranks", ui.theme.quiet);
  for (const std::string& tier : table.tiers) {
    ImGui::TableNextColumn();
    number_right(ui, tier, ui.theme.quiet);
  }
  draw_rows(ui, table);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text(ui, "all", ui.theme.text);
  ImGui::TableNextColumn();
  for (std::size_t tier = 0; tier < table.tiers.size(); ++tier) {
    ImGui::TableNextColumn();
    number_right(ui, format_bytes(table.totals[tier]), ui.theme.text);
    ui.probes.put_item("traffic.total." + table.tiers[tier]);
  }
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text(ui, "a link is busy", ui.theme.quiet);
  ImGui::TableNextColumn();
  for (const double busy : table.busy) {
    ImGui::TableNextColumn();
    number_right(ui, format_percent(busy), ui.theme.quiet);
  }
  ImGui::EndTable();
}

}  // namespace

void draw_traffic(Ui& ui) {
  constexpr float kBeside = 760;  // units: both have room beside each other
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (room.x < ui.units(kBeside)) {
    draw_links(ui);
    ImGui::Dummy({0, ui.units(6)});
    return draw_axes(ui);
  }
  if (ImGui::BeginChild("links", {room.x * 0.58F, 0})) draw_links(ui);
  ImGui::EndChild();
  ImGui::SameLine(0, ui.units(16));
  if (ImGui::BeginChild("by_axis")) draw_axes(ui);
  ImGui::EndChild();
}

}  // namespace shardwise::view
