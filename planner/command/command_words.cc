#include "planner/command/command_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestMistake = 300;

/// What is after `mark`, which `text` has, and before it.
struct Halves {
  std::string before;
  std::string after;
};
bool cut(const std::string& text, std::string_view mark, Halves& halves) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return false;
  halves = {text.substr(0, at), text.substr(at + mark.size())};
  return true;
}

/// "foo not in {a,b}" after `name`.
std::string not_one_of(const std::string& name, const std::string& typed, std::string names) {
  if (names.ends_with('}')) names.pop_back();
  std::string list;
  for (const char c : names) list += c == ',' ? std::string(", ") : std::string(1, c);
  return fmt::format("{}: {} is not one of {}", name, typed, list);
}

}  // namespace

std::string help_row(std::string_view name, std::string_view meaning, std::size_t column) {
  std::string row(name);
  if (meaning.empty()) return row.empty() ? row : row + "\n";
  const std::string indent(column, ' ');
  const std::size_t width = display_width(name);
  if (width < column) {
    row.append(column - width, ' ');
  } else if (width > 0) {
    row += "\n" + indent;
  }
  for (const char c : wrap(meaning, kHelpWidth - column)) {
    row += c;
    if (c == '\n') row += indent;
  }
  return row + "\n";
}

std::string without_blank_pairs(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c == '\n' && kept.ends_with("\n\n")) continue;
    kept += c;
  }
  return kept;
}

std::string plain_mistake(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string name = text.substr(0, text.find(':'));
  Halves halves;
  Halves typed;
  if (text.find(": At Most 1 required") != std::string::npos) {
    text = name + " is given more than once";
  } else if (text.find(": 1 required ") != std::string::npos ||
             text == fmt::format("{}: {}", name, kNeedsAValue)) {
    text = name + " needs a value";
  } else if (text.starts_with("The following argument")) {  // all of them, the last one first
    const std::string word = text.substr(text.find_last_of(' ') + 1);
    text = fmt::format("unknown {} {}", word.starts_with('-') ? "flag" : "argument", word);
  } else if (cut(text, " not in {", halves) && cut(halves.before, ": ", typed)) {
    text = not_one_of(typed.before, typed.after, halves.after);
  } else if (cut(text, " requires ", halves)) {
    text = halves.before + " needs " + halves.after;
  } else if (cut(text, " excludes ", halves)) {
    text = halves.before + " does not go with " + halves.after;
  } else if (text.ends_with(" is required")) {
    text = text.substr(0, text.size() - 12) + " is missing";
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return shown(text, kLongestMistake);
}

}  // namespace shardwise
