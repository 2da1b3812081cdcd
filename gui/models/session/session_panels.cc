// Which panel is seen.
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gui/models/question/choices.h"
#include "gui/models/session/session.h"
#include "gui/models/window/panel_facts.h"

namespace shardwise::view {

std::string Session::show_panel(const std::string& id) {
  const PanelFacts* const panel = find_panel(id);
  if (panel == nullptr) {
    std::vector<std::string> known;
    for (const PanelFacts& each : panel_facts()) known.emplace_back(each.id);
    return unknown_word(id, "panel", known);
  }
  if (!panel->shows(state_)) return fmt::format("{} has nothing to show yet", panel->title);
  for (std::size_t w = 0; w < kWorkspaces && !panel->is_in(state_.workspace); ++w) {
    if (panel->is_in(static_cast<Workspace>(w))) set_workspace(static_cast<Workspace>(w));
  }
  state_.panel.front = id;
  ++state_.panel.fronts;
  return "";
}

}  // namespace shardwise::view
