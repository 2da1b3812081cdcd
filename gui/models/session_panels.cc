// Which panel is seen.
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/panel_facts.h"
#include "gui/models/session.h"
#include "planner/spec/nearest.h"

namespace shardwise::view {

std::string Session::show_panel(const std::string& id) {
  const PanelFacts* const panel = find_panel(id);
  if (panel == nullptr) {
    std::vector<std::string> known;
    for (const PanelFacts& each : panel_facts()) known.emplace_back(each.id);
    const std::optional<std::string> near = nearest(id, known);
    return fmt::format("{} is no panel{}", id.empty() ? "nothing" : id,
                       near ? fmt::format(" (did you mean {}?)", *near) : "");
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
