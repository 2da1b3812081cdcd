#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwise {

/// Assumptions that state a row in the planner's own terms, and reasons that keep it from being
/// scored. The first reason given stays.
struct Notes {
  std::vector<std::string> assumed;
  std::string refused;         // neither memory nor time can be predicted
  std::string refused_memory;  // memory cannot
  std::string refused_time;

  void assume(std::string text) { assumed.push_back(std::move(text)); }
  void refuse(std::string reason) { keep(refused, std::move(reason)); }
  void refuse_memory(std::string reason) { keep(refused_memory, std::move(reason)); }
  void refuse_time(std::string reason) { keep(refused_time, std::move(reason)); }

 private:
  static void keep(std::string& slot, std::string reason) {
    if (slot.empty()) slot = std::move(reason);
  }
};

/// `text` contains `word`, whatever their case. Sources word the same fact in many ways; rows are
/// read by the words that decide.
bool says(std::string_view text, std::string_view word);

/// One of them.
template <class... Words>
bool says_any(std::string_view text, const Words&... words) {
  return (says(text, words) || ...);
}

}  // namespace shardwise
