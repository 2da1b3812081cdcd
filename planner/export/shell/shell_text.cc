#include "planner/export/shell/shell_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "planner/export/shell/shell_reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The text as a shell's file has it: without the mark of its encoding and carriage returns.
std::string plain_text(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::string made;
  made.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
    made += text[i];
  }
  return made;
}

bool begins_with_flag(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at = text.find_first_not_of(" \t\n", at);
    if (at == std::string_view::npos || text[at] != '#') break;
    at = text.find('\n', at);
  }
  return at < text.size() && text.substr(at, 2) == "--";
}

}  // namespace

std::size_t control_character(std::string_view text) {
  const auto at = std::ranges::find_if(text, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\n' && c != '\t') || code == 0x7f;
  });
  return static_cast<std::size_t>(at - text.begin());
}

Result<ShellCommand> read_shell(std::string_view text, const std::string& file,
                                const ShellStart& start) {
  const auto line_of = [](std::string_view all, std::size_t at) {
    return static_cast<int>(std::ranges::count(all.substr(0, at), '\n')) + 1;
  };
  const std::size_t wrong = first_not_utf8(text);
  if (wrong != text.size()) {
    return Diagnostic{file, line_of(text, wrong), 0, "", "not UTF-8", "a text file"};
  }
  if (text.size() > kMostShellBytes) {
    return Diagnostic{
        file, 0, 0, "", "more than 1 MB of commands", "give the command as the shell runs it"};
  }
  const std::string plain = plain_text(text);
  if (const std::size_t at = control_character(plain); at != plain.size()) {
    return Diagnostic{file,
                      line_of(plain, at),
                      0,
                      "",
                      fmt::format("a control character: {}", shown(plain.substr(at, 1))),
                      "a text file"};
  }
  // Where the program is started in branches that nobody can decide, the first that does is taken.
  constexpr int kMostTries = 4;
  std::set<int> taken;
  for (int tries = 1;; ++tries) {
    ShellReader reader(plain, file, begins_with_flag(plain), taken);
    Result<ShellCommand> read = reader.read(start);
    const bool is_lost = !read && reader.lost() > 0;
    if (!is_lost || tries == kMostTries || !taken.insert(reader.lost()).second) return read;
  }
}

}  // namespace shardwise
