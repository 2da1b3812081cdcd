#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/text/table.h"

namespace shardwise::sim {

/// The class of a tone in report.css, after a space; nothing for plain text.
std::string_view tone_class(Tone tone);

/// A cell of a table in a page: text that is escaped, or markup of our own.
struct HtmlCell {
  HtmlCell(std::string words, Tone meaning = Tone::plain)  // NOLINT(*explicit*)
      : text(std::move(words)), tone(meaning) {}
  HtmlCell(const char* words) : text(words) {}  // NOLINT(*explicit*)
  static HtmlCell of_markup(std::string html);

  std::string text;
  Tone tone = Tone::plain;
  bool markup = false;
};

struct HtmlColumn {
  HtmlColumn(std::string words, Align side = Align::right,  // NOLINT(*explicit*)
             std::string_view filter_word = {})
      : heading(std::move(words)), align(side), key(filter_word) {}

  std::string heading;
  Align align;
  std::string_view key;  // the column's word in a filter; empty for none
};

/// The one printer of tables into pages.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns) : columns_(std::move(columns)) {}

  /// \pre cells.size() <= number of columns
  void row(const std::vector<HtmlCell>& cells, std::string_view row_class = {});
  /// Below the rows, after a line.
  void total(const std::vector<HtmlCell>& cells);

  /// \param attributes  of the element, "id=\"layouts\"", our own
  std::string text(std::string_view attributes = {}) const;

 private:
  std::string cells_text(const std::vector<HtmlCell>& cells) const;

  std::vector<HtmlColumn> columns_;
  std::string rows_;
  std::string totals_;
};

}  // namespace shardwise::sim
