#include "planner/spec/json/json_problem.h"

#include <string_view>

#include "planner/spec/text/utf8.h"

namespace shardwise {

std::string json_problem(const std::string& what) {
  static constexpr std::string_view kStart = "syntax error ";
  const std::size_t start = what.find(kStart);
  std::string text = start == std::string::npos ? what : what.substr(start + kStart.size());
  if (const std::size_t read = text.find("; last read"); read != std::string::npos) {
    const std::size_t expected = text.rfind("; expected ");
    const bool keep = expected != std::string::npos && expected > read;
    text = text.substr(0, read) + (keep ? text.substr(expected) : "");
  }
  if (const std::size_t semicolon = text.find("; "); semicolon != std::string::npos) {
    text[semicolon] = ',';
  }
  if (const std::size_t dash = text.find(" - "); dash != std::string::npos) {
    text = text.substr(0, dash) + ": " + text.substr(dash + 3);
  }
  return "not JSON " + shown(text, 200);
}

}  // namespace shardwise
