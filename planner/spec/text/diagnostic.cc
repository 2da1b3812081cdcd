#include "planner/spec/text/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "planner/spec/text/utf8.h"

namespace shardwise {

namespace {

// Messages quote what the user's file says, which may be anything and of any length.
constexpr std::size_t kLongestMessage = 400;
constexpr std::size_t kLongestHintLine = 10'000;
constexpr std::size_t kMostPrinted = 16;

/// A hint may have several lines; nothing else in it may steer the terminal.
std::string shown_lines(std::string_view text) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines += shown(text.substr(0, end), kLongestHintLine);
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = shown(diagnostic.file, kLongestMessage);
  if (diagnostic.line > 0) text += fmt::format(":{}", diagnostic.line);
  if (diagnostic.line > 0 && diagnostic.column > 0) text += fmt::format(":{}", diagnostic.column);
  if (!diagnostic.path.empty()) text += ": " + shown(diagnostic.path, kLongestMessage);
  text += ": " + shown(diagnostic.message, kLongestMessage);
  if (!diagnostic.hint.empty()) text += "\n    " + shown_lines(diagnostic.hint);
  return text;
}

std::string to_string(const Diagnostics& diagnostics) {
  // Readers check what belongs together; people mend a file from top to bottom.
  std::vector<const Diagnostic*> sorted;
  std::map<std::string_view, std::size_t> files;  // by first mention
  for (const Diagnostic& diagnostic : diagnostics) {
    sorted.push_back(&diagnostic);
    files.try_emplace(diagnostic.file, files.size());
  }
  const auto place = [&](const Diagnostic& d) {
    return std::tuple(files.at(d.file), d.line, d.column);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Diagnostic* a, const Diagnostic* b) { return place(*a) < place(*b); });
  std::string text;
  const std::size_t printed = std::min(sorted.size(), kMostPrinted);
  for (std::size_t i = 0; i < printed; ++i) text += to_string(*sorted[i]) + "\n";
  if (printed < sorted.size()) text += fmt::format("… {} more\n", sorted.size() - printed);
  text += fmt::format("{} problem{}, nothing was run\n", diagnostics.size(),
                      diagnostics.size() == 1 ? "" : "s");
  return text;
}

}  // namespace shardwise
