#include "answers/answer_parts.h"

#include <algorithm>
#include <limits>

namespace shardwise::sim {

SearchCounts counts_of_all(const PlanAnswer& answer) {
  const std::vector<SearchCounts> each = answer.counts();
  SearchCounts all = each.front();
  for (std::size_t e = 1; e < each.size(); ++e) {
    const SearchCounts& more = each[e];
    all.space.enumerated += more.space.enumerated;
    all.space.legal += more.space.legal;
    all.ranked += more.ranked;
    all.too_slow += more.too_slow;
    all.at_risk += more.at_risk;
    all.does_not_fit += more.does_not_fit;
    // An engine may have rules of its own.
    for (const RuleCount& rule : more.space.pruned) {
      const auto same = std::ranges::find_if(
          all.space.pruned, [&](const RuleCount& s) { return s.rule->id == rule.rule->id; });
      if (same == all.space.pruned.end()) {
        all.space.pruned.push_back(rule);
      } else {
        same->layouts += rule.layouts;
      }
    }
  }
  return all;
}

std::vector<const EngineAnswer*> other_engines(const PlanAnswer& answer) {
  std::vector<const EngineAnswer*> others;
  for (const EngineAnswer& each : answer.engines) {
    if (each.engine->name != answer.best.front().engine) others.push_back(&each);
  }
  std::ranges::stable_sort(others, {}, [](const EngineAnswer* each) {
    return each->best ? each->best->step().value() : std::numeric_limits<double>::infinity();
  });
  return others;
}

std::vector<PlanRow> thinned(std::span<const PlanRow> rows, std::size_t most) {
  if (rows.size() <= most || most < 2) return {rows.begin(), rows.end()};
  std::vector<PlanRow> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(rows[i * (rows.size() - 1) / (most - 1)]);
  return some;
}

std::vector<TimeDifference> time_differences(const StepReport& first, const StepReport& second) {
  std::vector<TimeDifference> differences;
  for (const TimePart& part : kTimeParts) {
    const TimeDifference each = {&part, first.time.*part.field, second.time.*part.field};
    if (each.first != each.second) differences.push_back(each);
  }
  std::ranges::stable_sort(differences, std::ranges::greater(), &TimeDifference::more);
  return differences;
}

}  // namespace shardwise::sim
