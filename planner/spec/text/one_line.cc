#include "planner/spec/text/one_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestHint = 1000;

/// Its lines as one.
std::string joined(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line += text.substr(0, end);
    text.remove_prefix(end);
    if (text.empty()) break;
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (!line.empty() && !text.empty()) line += ' ';
  }
  return line;
}

}  // namespace

std::string one_line(const Diagnostics& problems) {
  if (problems.empty()) return "";
  Diagnostic first = problems.front();
  const bool typed = first.file.empty() || first.file == "command line";
  if (typed && first.path.starts_with("--")) first.path.erase(0, 2);
  first.message = joined(first.message);
  const std::string hint = joined(std::exchange(first.hint, ""));
  std::string text = to_string(first);
  if (typed) text.erase(0, first.file.size() + 2);  // "command line: "
  if (!hint.empty()) text += fmt::format(" ({})", shown(hint, kLongestHint));
  return problems.size() == 1 ? text : fmt::format("{}; … {} more", text, problems.size() - 1);
}

}  // namespace shardwise
