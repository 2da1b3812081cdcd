#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

constexpr std::array kPanels = std::to_array<Panel>({
    {"what_if", draw_what_if},
    {"explorer", draw_explorer},
    {"trade", draw_trade},
    {"memory", draw_memory},
    {"timeline", draw_timeline},
    {"why", draw_why},
    {"neighbours", draw_neighbours},
    {"levers", draw_levers},
    {"course", draw_course},
    {"mesh", draw_mesh},
    {"stretch", draw_stretch},
    {"order", draw_order},
    {"traffic", draw_traffic},
    {"heat", draw_heat},
    {"scaling_table", draw_scaling_table},
    {"compare", draw_compare},
    {"metrics", draw_metrics},
    {"selection", draw_selection},
});

/// Tabs of explore, beside the timeline.
constexpr std::array<std::string_view, 4> kStepTabs = {"why", "neighbours", "levers", "stretch"};

/// Puts a panel of a workspace into a part of its dock, where the workspace has it.
void dock(Workspace workspace, std::string_view id, ImGuiID node) {
  const PanelFacts* const panel = find_panel(id);
  if (panel != nullptr && panel->is_in(workspace)) {
    ImGui::DockBuilderDockWindow(window_name(*panel, workspace).c_str(), node);
  }
}

/// What is there for a while, as tabs in one place.
void dock_beside(Workspace workspace, ImGuiID node) {
  for (const std::string_view id : {"compare", "metrics"}) dock(workspace, id, node);
}

/// Of several panels in one place, the one that is seen.
void put_in_front(Workspace workspace, std::string_view id, ImGuiID node) {
  const PanelFacts* const panel = find_panel(id);
  if (panel == nullptr || !panel->is_in(workspace)) return;
  const ImGuiID window = ImHashStr(window_name(*panel, workspace).c_str());
  ImGui::DockBuilderGetNode(node)->SelectedTabId = ImHashStr("#TAB", 4, window);
}

/// Notes the name of a panel whose tab has no room for it.
void note_tab(Ui& ui, const PanelFacts& panel, Workspace workspace) {
  const ImGuiWindow* const window = ImGui::FindWindowByName(window_name(panel, workspace).c_str());
  if (window == nullptr || !window->DockIsActive || window->DockNode->TabBar == nullptr) return;
  ImGuiTabBar& bar = *window->DockNode->TabBar;
  const ImGuiTabItem* const tab = ImGui::TabBarFindTabByID(&bar, window->TabId);
  if (tab == nullptr || bar.Tabs.Size == 1) return;
  const bool whole = tab->Width >= tab->ContentWidth && bar.ScrollingAnim == 0 &&
                     tab->Offset + tab->Width <= bar.BarRect.GetWidth() + 1;
  if (!whole) ui.probes.cut(panel.title);
}

/// A part of the window's width for what-if: names of its sliders have to fit beside their values.
float what_if_share(Ui& ui, float width, float share) {
  constexpr float kLeast = 178;
  constexpr float kMost = 0.3F;
  return std::min(std::max(share, ui.units(kLeast) / width), kMost);
}

/// A part of a dock's width for panels that are tabs: `share`, or more where their names have no
/// room on it.
float tabs_share(ImGuiID node, std::span<const std::string_view> ids, float share) {
  constexpr float kMost = 0.5F;
  const ImGuiStyle& style = ImGui::GetStyle();
  float width = 2 * style.FramePadding.x;
  for (const std::string_view id : ids) {
    const std::string title(find_panel(id)->title);
    width += ImGui::TabItemCalcSize(title.c_str(), false).x + style.ItemInnerSpacing.x;
  }
  return std::clamp(width / ImGui::DockBuilderGetNode(node)->Size.x, share, kMost);
}

/// The default arrangement.
void arrange(Ui& ui, Workspace workspace, ImGuiID whole, ImVec2 size) {
  constexpr float kLow = 640;
  constexpr float kFlat = 500;
  constexpr float kTall = 900;
  const bool low = size.y < ui.units(kLow);
  ImGui::DockBuilderRemoveNode(whole);
  ImGui::DockBuilderAddNode(whole, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(whole, size);
  ImGuiID rest = whole;
  const auto cut = [&rest](ImGuiDir side, float share) {
    return ImGui::DockBuilderSplitNode(rest, side, share, nullptr, &rest);
  };
  const auto what_if = [&](float share) { return what_if_share(ui, size.x, share); };
  switch (workspace) {
    case Workspace::explore: {
      dock(workspace, "what_if", cut(ImGuiDir_Left, what_if(low ? 0.19F : 0.15F)));
      ImGuiID bottom = 0;
      ImGuiID beside = 0;
      if (!low) {
        bottom = cut(ImGuiDir_Down, 0.30F);
        ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Right, tabs_share(bottom, kStepTabs, 0.30F),
                                    &beside, &bottom);
      }
      ImGuiID right = cut(ImGuiDir_Right, 0.36F);
      ImGuiID below = 0;
      ImGui::DockBuilderSplitNode(right, ImGuiDir_Down, 0.5F, &below, &right);
      dock(workspace, "trade", right);
      dock(workspace, "memory", below);
      // The table keeps its rows: only a tall window has room for more below it.
      ImGuiID compared = rest;
      if (!low && size.y < ui.units(kTall)) {
        ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Right, 0.48F, &compared, &bottom);
      } else if (!low) {
        compared = cut(ImGuiDir_Down, 0.42F);
      }
      dock_beside(workspace, compared);
      // Where there is no room below, they are tabs behind the table.
      dock(workspace, "timeline", low ? rest : bottom);
      for (const std::string_view id : kStepTabs) dock(workspace, id, low ? rest : beside);
      dock(workspace, "explorer", rest);
      put_in_front(workspace, "explorer", rest);
      if (!low) put_in_front(workspace, "neighbours", beside);
      break;
    }
    case Workspace::memory: {
      dock(workspace, "what_if", cut(ImGuiDir_Left, what_if(0.15F)));
      ImGuiID side = cut(ImGuiDir_Right, 0.42F);
      ImGuiID course = side;
      // Where two have no room one above the other, they are tabs.
      const bool tabs = size.y < ui.units(kFlat);
      if (!tabs) ImGui::DockBuilderSplitNode(side, ImGuiDir_Up, 0.58F, &course, &side);
      dock(workspace, "course", course);
      dock_beside(workspace, side);
      dock(workspace, "memory", rest);
      break;
    }
    case Workspace::timeline: {
      dock(workspace, "what_if", cut(ImGuiDir_Left, what_if(0.15F)));
      const ImGuiID below = cut(ImGuiDir_Down, 0.28F);
      dock(workspace, "selection", below);
      dock_beside(workspace, below);
      dock(workspace, "timeline", rest);
      break;
    }
    case Workspace::mesh: {
      dock(workspace, "what_if", cut(ImGuiDir_Left, what_if(low ? 0.19F : 0.15F)));
      dock_beside(workspace, low ? rest : cut(ImGuiDir_Down, 0.26F));
      ImGuiID right = cut(ImGuiDir_Right, 0.37F);
      ImGuiID below = right;
      ImGuiID bottom = rest;
      if (!low) {
        ImGui::DockBuilderSplitNode(right, ImGuiDir_Down, 0.5F, &below, &right);
        bottom = cut(ImGuiDir_Down, 0.36F);
      }
      // Where there is no room below, they are tabs.
      dock(workspace, "order", below);
      dock(workspace, "stretch", right);
      dock(workspace, "traffic", bottom);
      dock(workspace, "mesh", rest);
      put_in_front(workspace, "stretch", right);
      put_in_front(workspace, "traffic", bottom);
      put_in_front(workspace, "mesh", rest);
      break;
    }
    case Workspace::scaling: {
      dock_beside(workspace, low ? rest : cut(ImGuiDir_Right, 0.3F));
      ImGuiID below = 0;
      if (!low) below = cut(ImGuiDir_Down, 0.36F);
      dock(workspace, "scaling_table", low ? rest : below);
      dock(workspace, "heat", rest);
      put_in_front(workspace, "heat", rest);
      break;
    }
  }
  ImGui::DockBuilderFinish(whole);
}

}  // namespace

std::span<const Panel> panel_list() { return kPanels; }

std::string window_name(const PanelFacts& panel, Workspace workspace) {
  return fmt::format("{}###{}.{}", panel.title, panel.id,
                     kWorkspaceNames[static_cast<std::size_t>(workspace)]);
}

void draw_workspace(Ui& ui, float top) {
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const float edge = ui.units(8);
  const ImVec2 size(viewport->WorkSize.x - 2 * edge, viewport->WorkSize.y - top - 2 * edge);
  ImGui::SetNextWindowPos({viewport->WorkPos.x + edge, viewport->WorkPos.y + top + edge});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.ink(ui.theme.page));
  ImGui::Begin("workspace", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PushStyleColor(ImGuiCol_Border, ui.ink(ui.theme.page));  // of what parts the panels
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    const auto workspace = static_cast<Workspace>(w);
    const ImGuiID node = ImGui::GetID(std::string(kWorkspaceNames[w]).c_str());
    const bool again = ui.arranged != ui.state.arrangements;
    if (again || ImGui::DockBuilderGetNode(node) == nullptr) arrange(ui, workspace, node, size);
    const bool here = workspace == ui.state.workspace;
    ImGui::DockSpace(node, {0, 0},
                     here ? ImGuiDockNodeFlags_AutoHideTabBar : ImGuiDockNodeFlags_KeepAliveOnly);
  }
  ui.arranged = ui.state.arrangements;
  ImGui::PopStyleColor();
  ImGui::End();
  const bool asked = ui.fronted != ui.state.panel.fronts;
  ui.fronted = ui.state.panel.fronts;
  for (const Panel& panel : kPanels) {
    const PanelFacts& facts = *find_panel(panel.id);
    if (!facts.is_in(ui.state.workspace) || !facts.shows(ui.state)) continue;
    if (asked && panel.id == ui.state.panel.front) ImGui::SetNextWindowFocus();
    if (ImGui::Begin(window_name(facts, ui.state.workspace).c_str(), nullptr,
                     ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoFocusOnAppearing)) {
      const ImVec2 least = ImGui::GetWindowPos();
      const ImVec2 extent = ImGui::GetWindowSize();
      ui.probes.put(std::string(panel.id), least, {least.x + extent.x, least.y + extent.y});
      ui.probes.explain(fmt::format("panel.{}", panel.id), least,
                        {least.x + extent.x, least.y + extent.y});
      panel.draw(ui);
    }
    ImGui::End();
    note_tab(ui, facts, ui.state.workspace);
  }
}

void draw_window(Ui& ui) {
  const float top = draw_summary(ui);
  draw_workspace(ui, top);
  draw_details(ui);
  draw_start(ui);
  draw_palette(ui);
  draw_help(ui);
}

}  // namespace shardwise::view
