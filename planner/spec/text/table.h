#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Meaning of a piece of text, which a terminal shows as colour.
enum class Tone : std::uint8_t { plain, strong, quiet, good, warning, bad };

/// `text` in the colour of `tone`; unchanged without `colour`.
std::string paint(std::string_view text, Tone tone, bool colour);

/// Columns a terminal needs for `text`: code points, not bytes. \pre text is UTF-8 without escapes
std::size_t display_width(std::string_view text);

/// Columns of the sentences that commands print.
inline constexpr std::size_t kTextWidth = 80;

/// `text` broken at spaces into lines of at most `width` columns, each after the first behind
/// `indent` spaces. A word longer than a line is broken behind its slashes, or stands alone.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string heading;
  Align align = Align::right;
};

struct Cell {
  Cell(std::string words, Tone meaning = Tone::plain)  // NOLINT(*explicit*)
      : text(std::move(words)), tone(meaning) {}
  Cell(const char* words) : text(words) {}  // NOLINT(*explicit*)
  std::string text;
  Tone tone = Tone::plain;
};

/// The one table printer: columns as wide as their widest cell, two spaces apart, numbers to the
/// right, a heading with a rule under it, no trailing spaces.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// \pre cells.size() <= number of columns; missing cells are empty
  void row(std::vector<Cell> cells);
  /// A line between the rows before and after it.
  void rule();

  /// Each line ends with a newline. `indent` spaces go before each.
  std::string text(bool colour, std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;  // an empty row is a rule
};

}  // namespace shardwise
