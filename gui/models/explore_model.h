#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gui/models/filter.h"
#include "gui/models/layout_row.h"

namespace shardwise::view {

struct SortKey {
  std::size_t column = 0;  // of columns()
  bool descending = false;
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

/// What the strategy table shows of an answer.
struct ExploreView {
  std::string filter_text;
  ParsedFilter parsed;
  bool only_fitting = false;
  std::vector<SortKey> sort;  // first the most important; empty: as the planner ranks
};

/// Indices of the rows that are shown, in their order. Of equal rows the planner's order stays.
std::vector<std::uint32_t> shown_rows(const Answer& answer, const ExploreView& view);

/// A row of the answer with that layout, or rows.size().
std::size_t find_row(const Answer& answer, const Layout& layout);

/// Indices of the rows on the Pareto front of memory and time among those that fit: by memory,
/// times falling.
std::vector<std::uint32_t> front_rows(const Answer& answer);

/// What is known of the times: "searching …", "every time is exact".
std::string known_text(const Answer& answer, bool current);

/// "94 of 280 fit", "nothing fits".
std::string counts_text(const Answer& answer, std::size_t shown);

}  // namespace shardwise::view
