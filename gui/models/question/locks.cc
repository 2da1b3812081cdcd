#include "gui/models/question/locks.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "planner/search/advice/any_legal.h"

namespace shardwise::view {
namespace {

std::string words_of_lock(const std::pair<std::string, std::string>& lock) {
  return fmt::format("{} {}", lock.first, lock.second);
}

}  // namespace

SearchRequest request_of(const Plan& plan, const QuestionLimits& limits) {
  SearchRequest request;
  request.model = &plan.model;
  request.cluster = &plan.cluster;
  request.job = &plan.job;
  request.engines = {&plan.engine};
  request.opened = limits.opened;
  request.locks = limits.locks;
  request.objective = limits.objective;
  return request;
}

std::string lock_words(const QuestionLimits& limits) {
  std::string words;
  for (const auto& lock : limits.locks) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", words_of_lock(lock));
  }
  return words;
}

std::string problem_of(const Plan& plan, const QuestionLimits& limits) {
  SearchRequest request = request_of(plan, limits);
  const Result<bool> some = any_legal(request);
  if (!some) return some.problems().front().message;
  if (*some || limits.locks.empty()) return "";
  request.locks.clear();
  const Result<bool> unlocked = any_legal(request);
  return unlocked && *unlocked ? "no layout has " + lock_words(limits) : "";
}

KeptLimits kept_limits(const Plan& plan, QuestionLimits limits) {
  KeptLimits kept;
  std::string dropped;
  const auto all = std::exchange(limits.locks, {});
  kept.limits = std::move(limits);
  for (const auto& lock : all) {
    kept.limits.locks.push_back(lock);
    if (problem_of(plan, kept.limits).empty()) continue;
    kept.limits.locks.pop_back();
    dropped += fmt::format("{}{}", dropped.empty() ? "" : ", ", words_of_lock(lock));
  }
  if (!dropped.empty()) kept.dropped = fmt::format("no layout has {}: unlocked", dropped);
  return kept;
}

}  // namespace shardwise::view
