#pragma once

#include <string>

#include "gui/models/question/question_limits.h"
#include "planner/search/search.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// Search of a plan's question, within limits. \pre the plan outlives it
SearchRequest request_of(const Plan& plan, const QuestionLimits& limits);

/// "tp 8, pp 2": the locks in words.
std::string lock_words(const QuestionLimits& limits);

/// Problem of limits of a plan's question: a value that is none, or "no layout has tp 8".
/// \returns empty when they leave some layout, or when the question has none without them
std::string problem_of(const Plan& plan, const QuestionLimits& limits);

/// Limits without the locks that leave a question no layout.
struct KeptLimits {
  QuestionLimits limits;
  std::string dropped;  // "no layout has tp 8: unlocked"; empty when all were kept
};
KeptLimits kept_limits(const Plan& plan, QuestionLimits limits);

}  // namespace shardwise::view
