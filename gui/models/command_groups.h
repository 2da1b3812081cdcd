#pragma once

#include <span>

#include "gui/models/commands.h"

namespace shardwise::view {

/// The commands by what they act on; commands() has them all, in this order.
std::span<const Command> window_commands();    // views, panels, palette, details
std::span<const Command> question_commands();  // model, cluster, job, engine and layout
std::span<const Command> table_commands();
std::span<const Command> timeline_commands();       // its range and lanes
std::span<const Command> timeline_view_commands();  // what is chosen, marked and stretched on it
std::span<const Command> mesh_commands();
std::span<const Command> scaling_commands();
std::span<const Command> file_commands();  // what is opened, and compared with
std::span<const Command> export_commands();

}  // namespace shardwise::view
