#include "planner/spec/text/table.h"

#include <algorithm>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

std::string_view escape_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::strong:
      return "\x1b[1m";
    case Tone::quiet:
      return "\x1b[2m";
    case Tone::good:
      return "\x1b[32m";
    case Tone::warning:
      return "\x1b[33m";
    case Tone::bad:
      return "\x1b[31m";
  }
  return "";
}

void trim_end(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::string paint(std::string_view text, Tone tone, bool colour) {
  const std::string_view escape = escape_of(tone);
  if (!colour || escape.empty() || text.empty()) return std::string(text);
  return std::string(escape) + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const auto next_line = [&] {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    };
    if (column > 0 && column + 1 + display_width(word) > width) {
      next_line();
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    while (column < width && column + display_width(word) > width) {
      const std::size_t slash = word.substr(0, width - column).rfind('/');
      if (slash == std::string_view::npos || slash + 1 == word.size()) break;
      out += word.substr(0, slash + 1);
      word.remove_prefix(slash + 1);
      next_line();
    }
    out += word;
    column += display_width(word);
  }
  return out;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<Cell> cells) {
  SHARDWISE_CHECK(!cells.empty() && cells.size() <= columns_.size(), std::to_string(cells.size()));
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

std::string Table::text(bool colour, std::size_t indent) const {
  std::vector<std::size_t> widths;
  bool headed = false;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].heading);
    headed = headed || width > 0;
    for (const auto& cells : rows_) {
      if (c < cells.size()) width = std::max(width, display_width(cells[c].text));
    }
    widths.push_back(width);
  }

  std::string out;
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text(indent, ' ');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) text += "  ";
      const std::string gap(widths[c] - display_width(cells[c].text), ' ');
      const std::string painted = paint(cells[c].text, cells[c].tone, colour);
      text += columns_[c].align == Align::right ? gap + painted : painted + gap;
    }
    trim_end(text);
    out += text + "\n";
  };
  const auto draw_rule = [&] {
    std::string text(indent, ' ');
    for (std::size_t c = 0; c < widths.size(); ++c) {
      text += std::string(c > 0 ? 2 : 0, ' ');
      for (std::size_t i = 0; i < widths[c]; ++i) text += "\u2500";
    }
    out += (colour ? paint(text, Tone::quiet, true) : text) + "\n";
  };

  if (headed) {
    std::vector<Cell> headings;
    for (const Column& column : columns_) headings.emplace_back(column.heading, Tone::strong);
    line(headings);
    draw_rule();
  }
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      draw_rule();
    } else {
      line(cells);
    }
  }
  return out;
}

}  // namespace shardwise
