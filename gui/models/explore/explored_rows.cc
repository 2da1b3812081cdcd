#include "gui/models/explore/explored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gui/models/question/locks.h"
#include "planner/estimate/estimate.h"
#include "planner/search/explore.h"
#include "planner/search/row_ranking.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {
namespace {

/// Rates go with the inverse of the step. \param before  the step that the row's rates are of
void correct_rates(LayoutRow& row, Seconds before) {
  const double slower = before > Seconds(0) ? row.step() / before : 1;
  row.mfu /= slower;
  row.tokens_per_s /= slower;
  row.dollars_per_1e9_tokens *= slower;
}

void set_time(LayoutRow& row, Seconds time, bool bound) {
  const Seconds before = row.step();
  row.time = time;
  row.bound = bound;
  correct_rates(row, before);
}

/// A row at the time of the reference, for set_time().
LayoutRow row_like(const StepReport& reference) {
  LayoutRow row;
  row.time = reference.step_time;
  row.mfu = reference.mfu;
  row.tokens_per_s = reference.tokens_per_s;
  row.dollars_per_1e9_tokens = reference.dollars_per_1e9_tokens;
  return row;
}

Answer priced_answer(const Exploration& all, const StepReport& reference, Objective objective) {
  Answer answer;
  answer.objective = objective;
  answer.usable = all.usable;
  answer.rows.assign(all.rows(), row_like(reference));
  for (std::size_t i = 0; i < all.rows(); ++i) {
    LayoutRow& row = answer.rows[i];
    row.layout = all.layout[i];
    row.needed = all.needed[i];
    row.memory = all.point[i];
    row.upper = all.upper[i];
    row.host_lacks = all.host_lacks[i];
    row.fit = all.fit[i];
    row.worst_stage = all.worst_stage[i];
    set_time(row, all.known_time(i), !all.timed(i));
  }
  answer.ranked = ranked_rows(all, objective);
  for (const SearchCounts& each : all.counts) {
    answer.counts.legal += each.space.legal;
    answer.counts.fit += each.ranked + each.too_slow;
    answer.counts.at_risk += each.at_risk;
    answer.counts.does_not_fit += each.does_not_fit;
  }
  return answer;
}

/// The rows without exact times, whose bounds the best have raised; all but that of `layout`, whose
/// time is known.
std::vector<TimedRow> bounds_of(const Exploration& all, const Layout& layout, Seconds time) {
  std::vector<TimedRow> rows;
  for (std::uint32_t row = 0; row < all.rows(); ++row) {
    if (all.timed(row)) continue;
    const bool known = all.layout[row] == layout;
    rows.push_back({row, known ? time : all.least_time[row], !known});
  }
  return rows;
}

}  // namespace

void explore_rows(const Plan& plan, const StepReport& reference, const std::stop_token& stop,
                  const RowListener& listener, Timing timing, std::shared_ptr<SearchMemory> memory,
                  const QuestionLimits& limits) {
  SearchRequest request = request_of(plan, limits);
  request.stop = stop;
  request.memory = std::move(memory);
  ExploreOptions options;
  options.most_timed = timing == Timing::fitting ? kMostPictured : 0;
  options.priced = [&](const Exploration& all) {
    Answer answer = priced_answer(all, reference, limits.objective);
    answer.engine = plan.engine.name;
    if (answer.counts.legal == 0 && !limits.locks.empty()) {
      answer.problem = fmt::format("no layout has {}: unlock a field", lock_words(limits));
    }
    listener.priced(std::move(answer));
  };
  options.timed = [&](const Exploration& all, std::span<const std::uint32_t> rows) {
    std::vector<TimedRow> timed;
    timed.reserve(rows.size());
    for (const std::uint32_t row : rows) timed.push_back({row, all.step_time[row]});
    listener.timed(std::move(timed));
  };
  const Result<Exploration> all = explore(request, options);
  if (!all) {
    Answer answer;
    answer.usable = usable_memory(plan.cluster, plan.job, Bytes(0));
    answer.problem = one_line(all.problems());
    listener.priced(std::move(answer));
    return;
  }
  if (stop.stop_requested()) return;
  if (timing == Timing::fitting) {
    listener.timed(bounds_of(*all, plan.layout, reference.step_time));
    return listener.ranked({{}, front_rows(*all)});
  }
  listener.ranked({ranked_rows(*all, limits.objective), front_rows(*all)});
}

Answer explored_rows(const Plan& plan, const StepReport& reference) {
  Answer answer;
  RowListener listener;
  listener.priced = [&](Answer priced) { answer = std::move(priced); };
  listener.timed = [&](const std::vector<TimedRow>& rows) { apply(answer, rows); };
  listener.ranked = [&](RankedRows rows) { apply(answer, std::move(rows)); };
  explore_rows(plan, reference, {}, listener);
  return answer;
}

void apply(Answer& answer, const std::vector<TimedRow>& rows) {
  for (const TimedRow& each : rows) set_time(answer.rows[each.row], each.time, each.bound);
}

void apply(Answer& answer, RankedRows rows) {
  answer.exact = std::ranges::none_of(answer.rows, &LayoutRow::bound);
  for (const std::uint32_t row : rows.front) answer.rows[row].front = true;
  if (answer.ranked.size() == rows.ranked.size()) {
    answer.ranked = std::move(rows.ranked);
  } else {
    rank(answer);  // there is a typed row as well, or a row was known before
  }
}

void slow_down(Answer& answer, double slower) {
  if (slower == 1) return;
  for (LayoutRow& row : answer.rows) set_time(row, row.time * slower, row.bound);
}

void mark_front(Answer& answer) {
  for (LayoutRow& row : answer.rows) row.front = false;
  const auto cost_of = [&](std::uint32_t i) {
    const LayoutRow& row = answer.rows[i];
    return RowCost{row.fit, row.memory, row.time, row.bound || row.typed};
  };
  for (const std::uint32_t i : rows_on_front(answer.rows.size(), cost_of)) {
    answer.rows[i].front = true;
  }
}

void set_simulated(LayoutRow& row, std::optional<Seconds> step) {
  const Seconds before = row.step();
  row.simulated = step;
  correct_rates(row, before);
}

void rank_by_model(const Answer& answer, std::vector<std::uint32_t>& rows) {
  rank_rows(rows, answer.objective, [&](std::uint32_t i) {
    const LayoutRow& row = answer.rows[i];
    return RowCost{row.fit, row.memory, row.time, row.bound};
  });
}

void rank(Answer& answer) {
  rank_by_model(answer, answer.ranked);
  const auto others =
      std::stable_partition(answer.ranked.begin(), answer.ranked.end(),
                            [&](std::uint32_t i) { return answer.rows[i].simulated.has_value(); });
  if (answer.objective == Objective::memory) return;
  std::stable_sort(answer.ranked.begin(), others, [&](std::uint32_t a, std::uint32_t b) {
    return answer.rows[a].step() < answer.rows[b].step();
  });
}

void judge(Answer& answer, Bytes usable) {
  answer.usable = usable;
  answer.counts.fit = answer.counts.at_risk = answer.counts.does_not_fit = 0;
  for (LayoutRow& row : answer.rows) {
    row.fit = fit_of(row.peaks(), usable);
    set_simulated(row, std::nullopt);
    std::int64_t& count = row.fit == Fit::fits      ? answer.counts.fit
                          : row.fit == Fit::at_risk ? answer.counts.at_risk
                                                    : answer.counts.does_not_fit;
    count += row.typed ? 0 : 1;
  }
  mark_front(answer);
  rank(answer);
}

void price(Answer& answer, const StepReport& reference) {
  for (LayoutRow& row : answer.rows) {
    const LayoutRow like = row_like(reference);
    row.dollars_per_1e9_tokens = like.dollars_per_1e9_tokens * (row.step() / like.time);
  }
}

std::size_t put_typed(Answer& answer, const Layout& layout, const StepReport& report) {
  if (answer.rows.empty() || !answer.rows.back().typed) {
    answer.ranked.push_back(static_cast<std::uint32_t>(answer.rows.size()));
    answer.rows.emplace_back();
  }
  LayoutRow& row = answer.rows.back();
  row = row_like(report);
  row.typed = true;
  row.layout = layout;
  row.needed = report.verdict.needed;
  row.memory = report.verdict.point;
  row.upper = report.verdict.upper;
  row.host_lacks = report.verdict.host_lacks;
  row.worst_stage = report.verdict.worst_stage;
  row.fit = fit_of(row.peaks(), answer.usable);
  rank(answer);
  return answer.rows.size() - 1;
}

}  // namespace shardwise::view
