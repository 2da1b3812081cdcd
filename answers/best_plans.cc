#include "answers/best_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace shardwise::sim {
namespace {

constexpr const char* kStage = "zero_stage";

bool is_locked(const PlanQuestion& question) {
  return std::ranges::any_of(question.locks, [](const auto& lock) { return lock.first == kStage; });
}

/// Those of one question, with clusters of `question`, of which it is a copy.
Result<std::vector<PlanRow>> ranked_rows(const PlanQuestion& copy, const PlanQuestion& question,
                                         const SayPlanning& say) {
  Result<PlanAnswer> found = answer(copy, say);
  if (!found) return found.problems();
  std::vector<PlanRow> rows = std::move(found->best);
  for (PlanRow& row : rows)
    row.cluster = &question.clusters[static_cast<std::size_t>(row.cluster - copy.clusters.data())];
  return rows;
}

}  // namespace

Result<std::vector<PlanRow>> best_plans(const PlanQuestion& question, std::size_t most,
                                        const SayPlanning& say) {
  PlanQuestion asked = question;
  asked.top = most;
  asked.front = false;
  Result<std::vector<PlanRow>> best = ranked_rows(asked, question, say);
  if (!best || best->empty() || is_locked(question)) return best;
  std::set<std::int64_t> stages;
  for (const EngineProfile* engine : question.engines) {
    stages.insert(engine->zero_stages.begin(), engine->zero_stages.end());
  }
  std::vector<PlanRow> rows = *std::move(best);
  for (const std::int64_t stage : stages) {
    PlanQuestion one = asked;
    one.locks.emplace_back(kStage, std::to_string(stage));
    const Result<std::vector<PlanRow>> more = ranked_rows(one, question, say);
    if (!more) continue;  // no layout has it
    for (const PlanRow& row : *more) {
      const bool known = std::ranges::any_of(rows, [&](const PlanRow& each) {
        return each.cluster == row.cluster && each.engine == row.engine &&
               each.candidate.layout == row.candidate.layout;
      });
      if (!known) rows.push_back(row);
    }
  }
  std::ranges::stable_sort(rows, {}, &PlanRow::step);
  if (rows.size() > most) rows.resize(most);
  return rows;
}

}  // namespace shardwise::sim
