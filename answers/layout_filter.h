#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/plan_columns.h"

namespace shardwise::sim {

/// Filter of a table's rows: conditions that all hold, "tp<=8 mfu>40 zero:1 recompute:full fits".
///
/// A condition is KEY OP VALUE without spaces. KEY is one of plan_columns(), OP one of < <= > >= =
/// != and `:`. Numbers are in the column's unit, and `:` is `=` for them. Of a column of words
/// VALUE is the whole text for `=` and `!=`, a part of it for `:`, and `none` (or `-`) for a row
/// without one. A word alone is one of plan_traits(); with `!` before it, its opposite. Nothing
/// shows all rows. The script of the report reads the same language (answers/html/report.js).
class LayoutFilter {
 public:
  bool keeps(const PricedLayout& row) const;
  bool empty() const { return conditions_.empty(); }

 private:
  friend struct ParsedFilter parse_filter(std::string_view text);
  enum class Compare : std::uint8_t { less, at_most, more, at_least, equal, unequal, has };
  struct Condition {
    const PlanTrait* trait = nullptr;    // or
    const PlanColumn* column = nullptr;  // with
    Compare compare = Compare::equal;
    double number = 0;
    std::string words;  // of a column of words
  };
  static bool holds(const Condition& condition, const PricedLayout& row);
  static std::string read(std::string_view word, Condition& condition);
  std::vector<Condition> conditions_;
};

/// A filter, or what is wrong with it: "tpp is no column (did you mean tp?)".
struct ParsedFilter {
  LayoutFilter filter;  // of the conditions before the one that is wrong
  std::string problem;  // empty when nothing is
};
ParsedFilter parse_filter(std::string_view text);

/// Words a filter compares in a column of words.
std::string compared_words(const PlanColumn& column, const PricedLayout& row);

/// Problem of a word of a filter, {0} and {1} to be replaced: for the report's script, too.
struct FilterProblem {
  std::string_view id;
  std::string_view text;
};
std::array<FilterProblem, 7> filter_problems();

}  // namespace shardwise::sim
