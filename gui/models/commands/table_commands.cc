#include "gui/models/commands/command_groups.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/explore/columns.h"
#include "gui/models/question/choices.h"

namespace shardwise::view {
namespace {

std::string unknown_column(const std::string& key) {
  std::vector<std::string> known;
  for (const Column& each : columns()) known.emplace_back(each.key);
  return unknown_word(key, "column", known);
}

std::string sort_by(Session& session, const std::string& argument) {
  const bool second = argument.starts_with('+');
  const std::string key = argument.substr(second ? 1 : 0);
  const std::optional<std::size_t> column = find_column(key);
  if (!column) return unknown_column(key);
  session.sort_by(*column, second);
  return "";
}

/// "tp pp step". Nothing: those that tell something.
std::string choose_columns(Session& session, const std::string& argument) {
  ExploreView view = session.state().explore;
  view.columns.clear();
  std::istringstream words(argument);
  for (std::string key; words >> key;) {
    const std::optional<std::size_t> column = find_column(key);
    if (!column) return unknown_column(key);
    view.columns.push_back(*column);
  }
  std::ranges::sort(view.columns);
  session.set_table(std::move(view));
  return "";
}

constexpr std::array kTableCommands = std::to_array<Command>({
    {"table.filter", "Shift+F", "Show only rows that match", "CONDITIONS",
     [](Session& session, const std::string& argument) {
       session.set_filter(argument);
       return session.state().explore.parsed.problem;
     }},
    {"table.fitting", "X", "Show only layouts that fit, or all", "",
     [](Session& session, const std::string&) {
       session.set_only_fitting(!session.state().explore.only_fitting);
       return std::string();
     }},
    {"table.sort", "O", "Sort by a column; a + before it sorts by it second", "COLUMN", sort_by},
    {"table.columns", "Shift+X", "Show these columns, or those that tell something", "[COLUMN …]",
     choose_columns},
    {"table.degrees", "Shift+D", "Show the best layout of each set of degrees, or all", "",
     [](Session& session, const std::string&) {
       ExploreView view = session.state().explore;
       view.one_of_degrees = !view.one_of_degrees;
       session.set_table(std::move(view));
       return std::string();
     }},
    {"trade.log", "Shift+L", "Show memory and time on log axes, or plain ones", "",
     [](Session& session, const std::string&) {
       session.exploring().log_axes = !session.exploring().log_axes;
       return std::string();
     }},
    {"table.unsort", "Shift+O", "Sort as the planner ranks", "",
     [](Session& session, const std::string&) {
       session.set_sort({});
       return std::string();
     }},
});

}  // namespace

std::span<const Command> table_commands() { return kTableCommands; }

}  // namespace shardwise::view
