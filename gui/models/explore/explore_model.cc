#include "gui/models/explore/explore_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gui/models/explore/columns.h"
#include "planner/search/row_ranking.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {

std::vector<std::uint32_t> shown_rows(const Answer& answer, const ExploreView& view) {
  std::vector<std::uint32_t> shown;
  shown.reserve(answer.rows.size());
  std::set<LayoutDegrees> seen;
  std::size_t rank = 0;
  for (const std::uint32_t i : answer.ranked) {
    const LayoutRow& row = answer.rows[i];
    ++rank;
    if (view.only_fitting && row.fit != Fit::fits) continue;
    if (!view.parsed.filter.keeps(priced(answer, row, rank))) continue;
    if (view.one_of_degrees && !seen.insert(degrees_of(row.layout)).second) continue;
    shown.push_back(i);
  }
  // The least important key first: stable sorts keep it among equals of the next.
  for (std::size_t k = view.sort.size(); k-- > 0;) {
    const SortKey& key = view.sort[k];
    const auto number = columns()[key.column].number;
    std::vector<double> numbers(answer.rows.size());
    for (const std::uint32_t i : shown) numbers[i] = number(priced(answer, answer.rows[i]));
    std::ranges::stable_sort(shown, [&](std::uint32_t a, std::uint32_t b) {
      // Rows without a number come last in both directions.
      const bool has_a = !std::isnan(numbers[a]);
      const bool has_b = !std::isnan(numbers[b]);
      if (!has_a || !has_b) return has_a && !has_b;
      return key.descending ? numbers[a] > numbers[b] : numbers[a] < numbers[b];
    });
  }
  return shown;
}

std::size_t find_row(const Answer& answer, const Layout& layout) {
  return static_cast<std::size_t>(std::ranges::find(answer.rows, layout, &LayoutRow::layout) -
                                  answer.rows.begin());
}

std::vector<std::uint32_t> front_rows(const Answer& answer) {
  std::vector<std::uint32_t> front;
  for (std::uint32_t i = 0; i < answer.rows.size(); ++i) {
    if (answer.rows[i].front) front.push_back(i);
  }
  std::ranges::sort(front, {}, [&](std::uint32_t i) { return answer.rows[i].memory; });
  return front;
}

std::string boxed_filter(std::string_view text, const TradeBox& box) {
  std::string words;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    const std::string_view key = word.substr(0, word.find_first_of("<>=!:"));
    const bool replaced = key.size() < word.size() && (key == "memory" || key == "model");
    if (!word.empty() && !replaced) words += fmt::format("{} ", word);
  }
  return fmt::format("{}memory>={:.6g} memory<={:.6g} model>={:.6g} model<={:.6g}", words,
                     box.least_gib, box.most_gib, box.least_seconds, box.most_seconds);
}

std::string known_text(const Answer& answer, bool current) {
  if (!current) return "searching …";
  if (answer.exact) return "every time is exact";
  const auto bounds = std::ranges::count(answer.rows, true, &LayoutRow::bound);
  return fmt::format("{} times are lower bounds (≥)", format_count(bounds));
}

std::string misfit_text(const LayoutRow& row, Bytes usable) {
  if (row.fit == Fit::fits) return "";
  const bool lacks = row.fit == Fit::does_not_fit;
  if (lacks && row.host_lacks > Bytes(0)) {
    return fmt::format("a host lacks {}", format_bytes(row.host_lacks));
  }
  const Bytes over = (lacks ? row.needed : row.upper) - usable;
  return fmt::format("{}stage {} is {} over", lacks ? "" : "the upper bound of ", row.worst_stage,
                     format_bytes(over));
}

std::string counts_text(const Answer& answer, std::size_t shown) {
  if (!answer.problem.empty()) return answer.problem;
  std::string fit =
      answer.counts.fit == 0
          ? fmt::format("nothing fits of {}", format_count(answer.counts.legal))
          : fmt::format("{} of {} fit, {} at risk", format_count(answer.counts.fit),
                        format_count(answer.counts.legal), format_count(answer.counts.at_risk));
  if (shown >= static_cast<std::size_t>(answer.counts.legal)) return fit;
  return fmt::format("{} shown, {}", format_count(static_cast<std::int64_t>(shown)), fit);
}

}  // namespace shardwise::view
