#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/models/mesh/mesh_state.h"
#include "gui/panels/panels.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {
namespace {

std::string joined(const std::vector<Axis>& axes) {
  std::string words;
  for (const Axis axis : axes) words += (words.empty() ? "" : "-") + std::string(name_of(axis));
  return words;
}

std::string difference(Seconds time, Seconds now) { return signed_percent(time / now - 1); }

/// The axes as chips, fastest first; one can be dragged to another place.
void draw_chips(Ui& ui) {
  const Layout& layout = ui.state.plan.layout;
  const std::vector<Axis> axes = moving_axes(layout);
  std::vector<float> centres;
  int dragged = -1;
  int dropped = -1;
  ImGui::PushStyleVarX(ImGuiStyleVar_ItemSpacing, ui.units(4));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) ImGui::SameLine();
    const std::string word =
        fmt::format("{} {}", name_of(axes[i]), format_count(ranks_along(layout, axes[i])));
    ImGui::PushID(static_cast<int>(i));
    ImGui::Button(word.c_str());
    ui.probes.put_item(fmt::format("order.{}", name_of(axes[i])));
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
      dragged = static_cast<int>(i);
    }
    if (ImGui::IsItemDeactivated()) dropped = static_cast<int>(i);
    ImGui::PopID();
    centres.push_back((ImGui::GetItemRectMin().x + ImGui::GetItemRectMax().x) / 2);
  }
  ImGui::PopStyleVar();
  const int moved = std::max(dragged, dropped);
  if (moved < 0) return;
  // Its place is behind all chips whose middle is left of the pointer.
  const auto own = static_cast<std::size_t>(moved);
  std::size_t place = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != own && centres[i] < ImGui::GetIO().MousePos.x) ++place;
  }
  std::vector<Axis> order = axes;
  order.erase(order.begin() + moved);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), axes[own]);
  const std::string words = joined(order);
  if (dropped >= 0) {
    ui.want(order == axes ? "mesh.try" : "mesh.order " + words);
    return;
  }
  const MeshState& mesh = ui.state.mesh;
  if (!mesh.tried || order_text(layout, *mesh.tried) != words) ui.want("mesh.try " + words);
}

void draw_tried(Ui& ui) {
  const MeshState& mesh = ui.state.mesh;
  if (!mesh.tried) {
    text(ui, "drag an axis; the first varies fastest", ui.theme.quiet);
    return;
  }
  const Seconds now = ui.state.report.step_time;
  const Seconds then = mesh.tried_step;
  text(ui,
       fmt::format("{}: {}, {}", order_text(ui.state.plan.layout, *mesh.tried),
                   format_seconds(then), difference(then, now)),
       then > now ? ui.theme.warning : ui.theme.good);
  ui.probes.put_item("order.tried");
}

void draw_order_row(Ui& ui, const PricedOrder& each, std::size_t place) {
  const Layout& layout = ui.state.plan.layout;
  const std::string words = order_text(layout, each.order);
  const bool own = each.order == layout.order;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::PushID(static_cast<int>(place));
  ImGui::PushStyleColor(ImGuiCol_Header, ui.ink(ui.theme.selected));
  if (ImGui::Selectable("##order", own, ImGuiSelectableFlags_SpanAllColumns,
                        {0, wrapped_height(words)}) &&
      !own) {
    ui.want("mesh.order " + words);
  }
  ImGui::PopStyleColor();
  ImGui::PopID();
  ui.probes.put_item(fmt::format("order.row.{}", place));
  if (ImGui::IsItemHovered()) {
    Layout there = layout;
    there.order = each.order;
    ImGui::SetTooltip("%s\n%s", words.c_str(), links_text(ui.state.plan.cluster, there).c_str());
  }
  ImGui::SetCursorPos(at);
  wrapped_text(ui, words, own ? ui.theme.text : ui.theme.quiet);
  ImGui::TableNextColumn();
  number_right(ui, format_seconds(each.cost.step_time), ui.theme.text);
  ImGui::TableNextColumn();
  const Seconds now = ui.state.report.step_time;
  number_right(ui, own ? "as it is" : difference(each.cost.step_time, now),
               own                         ? ui.theme.quiet
               : each.cost.step_time > now ? ui.theme.warning
                                           : ui.theme.good);
}

}  // namespace

void draw_order(Ui& ui) {
  const MeshState& mesh = ui.state.mesh;
  model_heading(ui, "Order of axes", "decides which axis has which links");
  if (moving_axes(ui.state.plan.layout).size() < 2) {
    return text(ui, "fewer than two axes have several ranks", ui.theme.quiet);
  }
  draw_chips(ui);
  draw_tried(ui);
  if (!mesh.facts) return text(ui, "pricing the others …", ui.theme.quiet);
  const std::vector<PricedOrder>& orders = mesh.facts->orders;
  if (orders.size() == 1) return text(ui, "every order costs the same here", ui.theme.quiet);
  if (!ImGui::BeginTable("orders", 3)) return;
  ImGui::TableSetupColumn("order", ImGuiTableColumnFlags_WidthStretch);
  for (const char* const widest : {"88.88 ms", "as it is"}) {
    ImGui::TableSetupColumn(widest, ImGuiTableColumnFlags_WidthFixed, number_width(ui, widest));
  }
  for (std::size_t i = 0; i < orders.size(); ++i) draw_order_row(ui, orders[i], i + 1);
  ImGui::EndTable();
}

}  // namespace shardwise::view
