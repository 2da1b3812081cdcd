#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/layout_row.h"

namespace shardwise::view {

/// What rows a table shows: conditions that all hold, "tp<=8 mfu>40 zero:1 recompute:full fits".
///
/// A condition is KEY OP VALUE without spaces. KEY is one of columns(), OP one of < <= > >= = !=
/// and
/// `:`, which is `=`. Memory is in GiB, time in seconds, mfu in percent. Of a column of words VALUE
/// is one; `-` is none. A word alone is `fits`, `risk`, `over` or `front`; with `!` before it, its
/// opposite. Nothing shows all rows.
class Filter {
 public:
  bool keeps(const LayoutRow& row) const;
  bool empty() const { return conditions_.empty(); }

 private:
  friend struct ParsedFilter parse_filter(std::string_view text);
  enum class Compare : std::uint8_t { less, at_most, more, at_least, equal, unequal };
  enum class Trait : std::uint8_t { none, fits, risk, over, front };
  struct Condition {
    std::size_t column = 0;
    Compare compare = Compare::equal;
    double number = 0;
    std::string word;  // of a column of words
    Trait trait = Trait::none;
  };
  static bool holds(const Condition& condition, const LayoutRow& row);
  std::vector<Condition> conditions_;
};

/// A filter, or what is wrong with it: "tpp is no column (did you mean tp?)".
struct ParsedFilter {
  Filter filter;        // of the conditions before the one that is wrong
  std::string problem;  // empty when nothing is
};
ParsedFilter parse_filter(std::string_view text);

}  // namespace shardwise::view
