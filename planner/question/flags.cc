#include "planner/question/flags.h"

#include <algorithm>
#include <string_view>
#include <utility>

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
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Diagnostic wrong_flag(std::string flag, std::string message, std::string hint) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

}  // namespace shardwise
