#include "planner/question/flags.h"

#include <algorithm>
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

Diagnostic wrong_flag(std::string flag, std::string message, std::string hint) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

}  // namespace shardwise
