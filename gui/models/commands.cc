#include "gui/models/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "gui/models/command_groups.h"
#include "planner/spec/nearest.h"

namespace shardwise::view {
namespace {

/// How well letters match a text: where all of them are in it in order, less for gaps.
std::optional<int> match(std::string_view typed, std::string_view text) {
  constexpr int kGap = 1;
  constexpr int kWordStart = 3;
  int score = 0;
  std::size_t at = 0;
  for (const char letter : typed) {
    if (letter == ' ') continue;
    const std::size_t from = at;
    while (at < text.size() && std::tolower(static_cast<unsigned char>(text[at])) !=
                                   std::tolower(static_cast<unsigned char>(letter))) {
      ++at;
    }
    if (at == text.size()) return std::nullopt;
    score -= at > from ? kGap : 0;
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '.') score += kWordStart;
    ++at;
  }
  return score;
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> kAll = [] {
    std::vector<Command> all;
    for (const std::span<const Command> group :
         {window_commands(), question_commands(), table_commands(), timeline_commands(),
          timeline_view_commands(), mesh_commands(), scaling_commands(), file_commands(),
          export_commands()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return kAll;
}

const Command* find_command(std::string_view name) {
  const std::span<const Command> all = commands();
  const auto found = std::ranges::find(all, name, &Command::name);
  return found == all.end() ? nullptr : &*found;
}

std::string run_command(Session& session, std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const Command* const command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> known;
    for (const Command& each : commands()) known.emplace_back(each.name);
    const std::optional<std::string> near = nearest(name, known);
    return fmt::format("unknown command {}{}", name,
                       near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
  const std::string argument(space == std::string_view::npos ? "" : line.substr(space + 1));
  if (command->argument.empty() && !argument.empty()) {
    return fmt::format("{} takes nothing after it", name);
  }
  return command->run(session, argument);
}

std::vector<const Command*> matching_commands(std::string_view typed) {
  std::vector<std::pair<int, const Command*>> scored;
  for (const Command& each : commands()) {
    const std::optional<int> by_name = match(typed, each.name);
    const std::optional<int> by_text = match(typed, each.text);
    if (!by_name && !by_text) continue;
    scored.emplace_back(std::max(by_name.value_or(-1000), by_text.value_or(-1000)), &each);
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &std::pair<int, const Command*>::first);
  std::vector<const Command*> found;
  found.reserve(scored.size());
  for (const auto& [score, command] : scored) found.push_back(command);
  return found;
}

}  // namespace shardwise::view
