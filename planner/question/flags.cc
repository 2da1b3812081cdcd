#include "planner/question/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "planner/spec/text/utf8.h"

namespace shardwise {

std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::vector<std::string> flags_of(const std::map<std::string, std::string>& texts) {
  std::vector<std::string> flags;
  for (const auto& [field, text] : texts) {
    if (!text.empty()) flags.push_back(flag_of(field));
  }
  return flags;
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  if (has_control_character(word)) {
    // None of them reaches a terminal or ends a line; bash reads them back.
    std::string text = "$'";
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\';
      text += plain ? std::string(1, c) : fmt::format("\\{:03o}", byte);
    }
    return text + "'";
  }
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Diagnostic wrong_flag(std::string flag, std::string message, std::string hint) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

}  // namespace shardwise
