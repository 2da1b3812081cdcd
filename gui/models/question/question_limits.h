#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/search/ranking.h"

namespace shardwise::view {

/// A line of a menu.
struct Choice {
  std::string name;
  std::string line;  // what people need to know of it
};

/// Which layouts of a question are listed, and what the first of them has least of.
struct QuestionLimits {
  std::vector<std::pair<std::string, std::string>> locks;  // field, value
  std::vector<std::string> opened;                         // fields with every value they have
  Objective objective = Objective::step_time;

  /// The value that a field is locked at, or nullptr.
  const std::string* lock_of(const std::string& field) const {
    for (const auto& [key, value] : locks) {
      if (key == field) return &value;
    }
    return nullptr;
  }
  bool same_rows(const QuestionLimits& other) const {
    return locks == other.locks && opened == other.opened;
  }
  friend bool operator==(const QuestionLimits&, const QuestionLimits&) = default;
};

/// Names as commands and flags have them, with what they mean.
std::string_view name_of(Objective objective);
const std::vector<Choice>& objective_choices();

}  // namespace shardwise::view
