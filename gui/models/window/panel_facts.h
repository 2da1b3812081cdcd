#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gui/models/window/app_state.h"

namespace shardwise::view {

/// Facts of a panel besides how it is drawn.
struct PanelFacts {
  std::string_view id;          // of its probes: "explorer"
  std::string_view title;       // of its tab, where it shares a place
  std::uint8_t workspaces = 0;  // a bit for each that has it
  // Why its numbers are what they are that have no reason of their own.
  std::string_view reason;
  std::string_view source;
  /// It has something to show; null: always. Others take its place where it has not.
  bool (*has)(const AppState& state) = nullptr;

  bool is_in(Workspace workspace) const {
    return (workspaces >> static_cast<unsigned>(workspace) & 1U) != 0;
  }
  bool shows(const AppState& state) const { return has == nullptr || has(state); }
};

/// All panels, in the order in which a workspace draws those that it has.
std::span<const PanelFacts> panel_facts();
const PanelFacts* find_panel(std::string_view id);

}  // namespace shardwise::view
