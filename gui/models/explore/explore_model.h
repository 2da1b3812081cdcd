#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/layout_filter.h"
#include "gui/models/explore/layout_row.h"

namespace shardwise::view {

struct SortKey {
  std::size_t column = 0;  // of columns()
  bool descending = false;
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

/// Strategy table's view of an answer.
struct ExploreView {
  std::string filter_text;
  sim::ParsedFilter parsed;
  bool only_fitting = false;
  bool one_of_degrees = false;       // the best of each set of degrees
  std::vector<std::size_t> columns;  // that people chose; empty: those that tell something
  std::vector<SortKey> sort;         // first the most important; empty: as the planner ranks
};

/// Indices of the rows that are shown, in their order. Of equal rows the planner's order stays.
std::vector<std::uint32_t> shown_rows(const Answer& answer, const ExploreView& view);

/// A row of the answer with that layout, or rows.size().
std::size_t find_row(const Answer& answer, const Layout& layout);

/// Indices of the rows on the Pareto front of memory and time among those that fit: by memory,
/// times falling.
std::vector<std::uint32_t> front_rows(const Answer& answer);

/// A region of memory and time.
struct TradeBox {
  double least_gib = 0;
  double most_gib = 0;
  double least_seconds = 0;
  double most_seconds = 0;
};
/// A filter that keeps its other words and shows the rows of a region.
std::string boxed_filter(std::string_view text, const TradeBox& box);

/// State of the times in words: "searching …", "every time is exact".
std::string known_text(const Answer& answer, bool current);

/// Why a row does not fit: "stage 3 is 12.1 GiB over", or "the upper bound of stage 3 is 1.20 GiB
/// over"; empty of one that does.
std::string misfit_text(const LayoutRow& row, Bytes usable);

/// "94 of 280 fit", "nothing fits".
std::string counts_text(const Answer& answer, std::size_t shown);

}  // namespace shardwise::view
