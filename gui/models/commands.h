#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/session.h"

namespace shardwise::view {

/// One thing that people do. Palette, key, button, script and test run the same function.
struct Command {
  std::string_view name;      // "table.sort"
  std::string_view key;       // "Ctrl+K", "?"; unique
  std::string_view text;      // "Sort the table by a column"
  std::string_view argument;  // what follows the name: "COLUMN", "[WORDS]" when it may; or nothing
  /// \returns empty, or what is wrong with the argument
  std::string (*run)(Session& session, const std::string& argument) = nullptr;

  /// It says nothing without what follows its name.
  bool needs_argument() const { return !argument.empty() && !argument.starts_with('['); }
};

/// All of them, in the order of the help.
std::span<const Command> commands();
const Command* find_command(std::string_view name);

/// Runs "table.sort step". \returns empty, or what is wrong: "unknown command table.srt (did you
/// mean table.sort?)"
std::string run_command(Session& session, std::string_view line);

/// Commands whose name or text has the letters of `typed` in their order, the best match first.
std::vector<const Command*> matching_commands(std::string_view typed);

}  // namespace shardwise::view
