#include "planner/spec/text/split.h"

namespace shardwise {

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace shardwise
