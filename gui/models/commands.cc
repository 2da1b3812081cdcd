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

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '.';
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return made;
}

/// How well what is typed is found as it is: a whole word, the beginning of one, or a part.
int match_whole(std::string_view typed, std::string_view text) {
  constexpr int kWord = 300;
  constexpr int kBegins = 200;
  constexpr int kInside = 100;
  int best = 0;
  for (std::size_t at = text.find(typed); at != std::string_view::npos;
       at = text.find(typed, at + 1)) {
    const std::size_t end = at + typed.size();
    const bool ends = end == text.size() || begins_word(text, end + 1) || text[end] == ',';
    best = std::max(best, !begins_word(text, at) ? kInside : ends ? kWord : kBegins);
  }
  return best;
}

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
    if (begins_word(text, at)) score += kWordStart;
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
  std::string whole = lower(typed);
  while (whole.ends_with(' ')) whole.pop_back();
  for (const Command& each : commands()) {
    const std::optional<int> by_name = match(typed, each.name);
    const std::optional<int> by_text = match(typed, each.text);
    constexpr int kKey = 1000;
    const bool by_key = !whole.empty() && lower(each.key) == whole;
    if (!by_name && !by_text && !by_key) continue;
    // Letters here and there come behind words, and a name before the text that explains it.
    int score = std::max(by_name.value_or(-1000), by_text.value_or(-1000));
    if (!whole.empty()) {
      score +=
          std::max(match_whole(whole, lower(each.name)) + 1, match_whole(whole, lower(each.text)));
    }
    scored.emplace_back(score + (by_key ? kKey : 0), &each);
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &std::pair<int, const Command*>::first);
  std::vector<const Command*> found;
  found.reserve(scored.size());
  for (const auto& [score, command] : scored) found.push_back(command);
  return found;
}

}  // namespace shardwise::view
