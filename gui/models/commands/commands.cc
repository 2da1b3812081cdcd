#include "gui/models/commands/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "gui/models/commands/command_groups.h"
#include "gui/models/question/choices.h"
#include "planner/spec/text/nearest.h"

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

/// What one of several is found by.
struct Words {
  std::string_view name;
  std::string_view text;
  std::string_view key;    // empty for none
  std::string_view other;  // what else people call it, whole words; empty for nothing
};

/// Other words for commands, which neither name nor text has.
constexpr std::array kOtherWords = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"app.help", "shortcuts keyboard"},
    {"app.quit", "exit"},
    {"app.start", "begin home menu"},
    {"compare.calibrate", "fit adjust"},
    {"compare.open", "diff measured profile"},
    {"details.show", "explain formula source reason"},
    {"export.command", "cli shell terminal"},
    {"export.csv", "spreadsheet excel download"},
    {"export.page", "share send html mail web"},
    {"export.plan", "download"},
    {"export.png", "screenshot image"},
    {"export.trace", "perfetto chrome"},
    {"file.open", "load import"},
    {"levers.take", "improve speed up optimise"},
    {"memory.buffers", "tensors allocations"},
    {"mesh.bandwidth", "network nic infiniband nvlink faster"},
    {"mesh.order", "topology placement"},
    {"metrics.follow", "live watch tail"},
    {"question.cluster", "gpu hardware machine"},
    {"question.engine", "framework fsdp megatron deepspeed"},
    {"question.set", "edit batch sequence"},
    {"timeline.worst", "bottleneck slow"},
    {"view.light", "theme mode colours"},
    {"view.mesh", "network topology"},
    {"view.scaling", "more"},
    {"why.layout", "reason instead"},
});

std::string_view other_words(std::string_view name) {
  const auto* const found =
      std::ranges::find(kOtherWords, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kOtherWords.end() ? std::string_view() : found->second;
}

/// Those of `all` whose words have the letters of `typed` in their order, the best match first.
template <class T, class Of>
std::vector<T> matching(std::string_view typed, const std::vector<T>& all, const Of& words_of) {
  std::vector<std::pair<int, T>> scored;
  std::string whole = lower(typed);
  while (whole.ends_with(' ')) whole.pop_back();
  for (const T& each : all) {
    const Words words = words_of(each);
    const std::optional<int> by_name = match(typed, words.name);
    const std::optional<int> by_text = match(typed, words.text);
    constexpr int kKey = 1000;
    const bool by_key = !whole.empty() && lower(words.key) == whole;
    const int by_other = whole.empty() ? 0 : match_whole(whole, words.other);
    if (!by_name && !by_text && !by_key && by_other == 0) continue;
    // Letters here and there come behind words, and a name before the text that explains it.
    int score =
        std::max({by_name.value_or(-1000), by_text.value_or(-1000), by_other > 0 ? 0 : -1000});
    if (!whole.empty()) {
      score += std::max({match_whole(whole, lower(words.name)) + 1,
                         match_whole(whole, lower(words.text)), by_other});
    }
    scored.emplace_back(score + (by_key ? kKey : 0), each);
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &std::pair<int, T>::first);
  std::vector<T> found;
  found.reserve(scored.size());
  for (std::pair<int, T>& each : scored) found.push_back(std::move(each.second));
  return found;
}

/// The nearest one, or those of a group, or the groups where the name has none of them.
std::string unknown_command(std::string_view name) {
  const std::string_view group = name.substr(0, name.find('.'));
  std::vector<std::string> all;
  std::vector<std::string> groups;
  std::vector<std::string> of_group;
  for (const Command& each : commands()) {
    all.emplace_back(each.name);
    const std::string_view begin = each.name.substr(0, each.name.find('.') + 1);
    if (std::ranges::find(groups, std::string(begin) + "…") == groups.end()) {
      groups.push_back(std::string(begin) + "…");
    }
    if (each.name.starts_with(std::string(group) + ".")) of_group.emplace_back(each.name);
  }
  if (nearest(name, all)) return unknown_word(name, "command", all);
  return unknown_word(name, "command", of_group.empty() ? groups : of_group);
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
    return unknown_command(name);
  }
  const std::string argument(space == std::string_view::npos ? "" : line.substr(space + 1));
  if (command->argument.empty() && !argument.empty()) {
    return fmt::format("{} takes nothing after it", name);
  }
  return command->run(session, argument);
}

std::vector<CommandChoice> matching_choices(const AppState& state, std::string_view typed) {
  const std::size_t space = typed.find(' ');
  const Command* const command = find_command(typed.substr(0, space));
  if (space == std::string_view::npos || command == nullptr || command->choices == nullptr) {
    return {};
  }
  return matching(typed.substr(space + 1), command->choices(state), [](const CommandChoice& each) {
    return Words{each.argument, each.text, "", ""};
  });
}

std::vector<const Command*> matching_commands(std::string_view typed) {
  std::vector<const Command*> all;
  for (const Command& each : commands()) {
    if (!each.key.empty()) all.push_back(&each);
  }
  return matching(typed, std::move(all), [](const Command* each) {
    return Words{each->name, each->text, each->key, other_words(each->name)};
  });
}

std::string ready_line(const AppState& state, const Command& command) {
  constexpr std::array kEndings = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"export.csv", "csv"},
       {"export.page", "html"},
       {"export.plan", "plan.json"},
       {"export.png", "png"},
       {"export.report", "report.json"},
       {"export.trace", "trace.json"},
       {"scaling.csv", "scaling.csv"}});
  std::string line = std::string(command.name) + " ";
  const auto* const found = std::ranges::find(
      kEndings, command.name, &std::pair<std::string_view, std::string_view>::first);
  if (found == kEndings.end()) return line;
  const std::size_t begin = line.size();
  line += state.plan.model.name + "-" + std::to_string(state.plan.cluster.gpus) + "-" +
          state.plan.cluster.name;
  for (std::size_t i = begin; i < line.size(); ++i) {
    const char each = line[i];
    const bool plain = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                       (each >= '0' && each <= '9') || each == '.' || each == '_';
    // A name that begins with a point is hidden, one with a dash is an option.
    if (!plain || (i == begin && each == '.')) line[i] = i == begin ? '_' : '-';
  }
  return line + "." + std::string(found->second);
}

}  // namespace shardwise::view
