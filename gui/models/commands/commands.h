#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/session/session.h"

namespace shardwise::view {

/// Word that may follow a command's name: {"why", "why this number"}.
struct CommandChoice {
  std::string_view argument;
  std::string_view text;
};

/// One thing that people do. Palette, key, button, script and test run the same function.
struct Command {
  std::string_view name;      // "table.sort"
  std::string_view key;       // "Ctrl+K", "?"; unique. Empty: of scripts, not of hands
  std::string_view text;      // "Sort the table by a column"
  std::string_view argument;  // what follows the name: "COLUMN", "[WORDS]" when it may; or nothing
  /// \returns empty, or what is wrong with the argument
  std::string (*run)(Session& session, const std::string& argument) = nullptr;
  /// Words that may follow its name now; null where that is no short list.
  std::vector<CommandChoice> (*choices)(const AppState& state) = nullptr;
  /// Runs again and again while its key is held.
  bool repeats = false;

  /// It says nothing without what follows its name.
  bool needs_argument() const { return !argument.empty() && !argument.starts_with('['); }
};

/// All commands, in the order of the help.
std::span<const Command> commands();
const Command* find_command(std::string_view name);

/// Runs "table.sort step". \returns empty, or what is wrong: "table.srt is no command (did you
/// mean table.sort?)"
std::string run_command(Session& session, std::string_view line);

/// Line with which the palette opens for a command that needs an argument: its name and a space or,
/// of one that saves a file, a name for it: "export.page llama-3.1-70b-64-dgx-h100.html".
std::string ready_line(const AppState& state, const Command& command);

/// Choices of the command that `typed` names whose words have the letters behind its name; none
/// where it has none, or where no space follows the name.
std::vector<CommandChoice> matching_choices(const AppState& state, std::string_view typed);

/// Commands of hands whose name or text has the letters of `typed` in their order, or that people
/// call so, the best match first.
std::vector<const Command*> matching_commands(std::string_view typed);

}  // namespace shardwise::view
