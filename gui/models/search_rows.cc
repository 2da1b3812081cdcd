#include "gui/models/search_rows.h"

#include <algorithm>
#include <utility>

#include "planner/search/search.h"

namespace shardwise::view {
namespace {

/// Rows that a table still shows at once; a search keeps one for each set of degrees.
constexpr std::size_t kMostRows = 10'000;

void append(Answer& answer, const Candidate& candidate, bool front, const StepReport& reference) {
  const auto same = std::ranges::find(answer.rows, candidate.layout, &LayoutRow::layout);
  if (same != answer.rows.end()) {
    same->front = same->front || front;
    return;
  }
  LayoutRow& row = answer.rows.emplace_back();
  row.layout = candidate.layout;
  row.memory = candidate.cost.point;
  row.upper = candidate.cost.upper;
  row.time = candidate.cost.step_time;
  row.front = front;
  row.fit = fit_of(row.memory, row.upper, answer.usable);
  fill_rates(row, reference);
}

}  // namespace

Fit fit_of(Bytes memory, Bytes upper, Bytes usable) {
  if (upper <= usable) return Fit::fits;
  return memory <= usable ? Fit::at_risk : Fit::does_not_fit;
}

void fill_rates(LayoutRow& row, const StepReport& reference) {
  if (row.time <= Seconds(0) || reference.step_time <= Seconds(0)) return;
  const double slower = row.time / reference.step_time;
  row.mfu = reference.mfu / slower;
  row.tokens_per_s = reference.tokens_per_s / slower;
  row.dollars_per_1e9_tokens = reference.dollars_per_1e9_tokens * slower;
}

Answer search_rows(const Plan& plan, const StepReport& reference, const std::stop_token& stop) {
  Answer answer;
  SearchRequest request;
  request.model = &plan.model;
  request.cluster = &plan.cluster;
  request.job = &plan.job;
  request.engines = {&plan.engine};
  request.top = kMostRows;
  request.threads = 1;
  answer.usable = usable_memory(plan.cluster, plan.job, Bytes(0));
  if (stop.stop_requested()) return answer;
  const Result<SearchResult> found = search(request);
  if (!found) {
    answer.problem = to_string(found.problems().front());
    return answer;
  }
  for (const Candidate& each : found->front) append(answer, each, true, reference);
  for (const Candidate& each : found->best) append(answer, each, false, reference);
  for (const Candidate& each : found->risky) append(answer, each, false, reference);
  if (found->smallest && answer.rows.empty()) append(answer, *found->smallest, false, reference);
  std::ranges::stable_sort(answer.rows, {}, &LayoutRow::time);
  for (const SearchCounts& each : found->counts) {
    answer.counts.legal += each.space.legal;
    answer.counts.ranked += each.ranked + each.too_slow;
    answer.counts.at_risk += each.at_risk;
    answer.counts.does_not_fit += each.does_not_fit;
  }
  return answer;
}

}  // namespace shardwise::view
