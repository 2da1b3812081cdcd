#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gui/models/window/panel_facts.h"
#include "gui/panels/ui.h"

namespace shardwise::view {

/// A panel: draws what the state holds, and asks for commands. It computes nothing that a view
/// model could. docs/viewer.md, "A panel more", has the steps.
struct Panel {
  std::string_view id;  // of panel_facts()
  void (*draw)(Ui& ui) = nullptr;
};

void draw_what_if(Ui& ui);
void draw_explorer(Ui& ui);
void draw_trade(Ui& ui);   // memory and time of all layouts
void draw_memory(Ui& ui);  // of one GPU, by group
void draw_course(Ui& ui);  // memory over the step
void draw_timeline(Ui& ui);
void draw_selection(Ui& ui);  // on the timeline
void draw_neighbours(Ui& ui);
void draw_levers(Ui& ui);      // what would help most
void draw_why(Ui& ui);         // not this layout: from the winner to it
void draw_categories(Ui& ui);  // below the bars of memory
void draw_mesh(Ui& ui);
void draw_axes(Ui& ui);           // beside the links
void draw_traffic(Ui& ui);        // bytes by use and link, time by axis
void draw_order(Ui& ui);          // of the mesh's axes
void draw_stretch(Ui& ui);        // links of another bandwidth
void draw_heat(Ui& ui);           // the scaling map
void draw_scaling_table(Ui& ui);  // and tokens a second
void draw_metrics(Ui& ui);        // of a run that is followed
void draw_compare(Ui& ui);        // with a report, a trace or another plan

/// The bar above all workspaces. \returns its height
float draw_summary(Ui& ui);
/// Why a number is what it is, beside it, while that is asked.
void draw_details(Ui& ui);
/// The palette, the help and the menus to begin with, where they are open.
void draw_palette(Ui& ui);
void draw_help(Ui& ui);
void draw_start(Ui& ui);

std::span<const Panel> panel_list();
/// The name of a panel's window in a workspace, as ImGui has it.
std::string window_name(const PanelFacts& panel, Workspace workspace);
/// The workspace of the state, in what the summary leaves of the window.
void draw_workspace(Ui& ui, float top);

/// Everything of a frame.
void draw_window(Ui& ui);

}  // namespace shardwise::view
