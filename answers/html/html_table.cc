#include "answers/html/html_table.h"

#include <fmt/format.h>

#include <iterator>

#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

/// " class=\"n good\"": numbers stand to the right.
std::string classes(Align align, Tone tone) {
  const std::string_view number = align == Align::right ? "n" : "";
  const std::string_view meaning = tone_class(tone);
  if (number.empty() && meaning.empty()) return "";
  const std::string_view between = number.empty() || meaning.empty() ? "" : " ";
  return fmt::format(" class=\"{}{}{}\"", number, between, meaning);
}

}  // namespace

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::strong:
      return "strong";
    case Tone::quiet:
      return "quiet";
    case Tone::good:
      return "good";
    case Tone::warning:
      return "warning";
    case Tone::bad:
      return "bad";
  }
  return "";
}

HtmlCell HtmlCell::of_markup(std::string html) {
  HtmlCell cell(std::move(html));
  cell.markup = true;
  return cell;
}

std::string HtmlTable::cells_text(const std::vector<HtmlCell>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const HtmlCell& cell = cells[i];
    const bool names = i == 0 && columns_[i].align == Align::left;
    const std::string_view tag = names ? "th scope=\"row\"" : "td";
    fmt::format_to(std::back_inserter(text), "<{}{}", tag, classes(columns_[i].align, cell.tone));
    text += '>';
    text += cell.markup ? cell.text : escaped(cell.text);
    text += names ? "</th>" : "</td>";
  }
  return text;
}

void HtmlTable::row(const std::vector<HtmlCell>& cells, std::string_view row_class) {
  rows_ += row_class.empty() ? std::string("<tr>") : fmt::format("<tr class=\"{}\">", row_class);
  rows_ += cells_text(cells) + "</tr>\n";
}

void HtmlTable::total(const std::vector<HtmlCell>& cells) {
  totals_ += "<tr>" + cells_text(cells) + "</tr>\n";
}

std::string HtmlTable::text(std::string_view attributes) const {
  std::string made = "<div class=\"wide\"><table";
  if (!attributes.empty()) made.append(" ").append(attributes);
  made += "><thead><tr>";
  for (const HtmlColumn& column : columns_) {
    made += "<th scope=\"col\"" + classes(column.align, Tone::plain);
    if (!column.key.empty()) made += fmt::format(" data-key=\"{}\"", column.key);
    made += ">" + escaped(column.heading) + "</th>";
  }
  made += "</tr></thead>\n<tbody>\n" + rows_ + "</tbody>\n";
  if (!totals_.empty()) made += "<tfoot>\n" + totals_ + "</tfoot>\n";
  return made + "</table></div>\n";
}

}  // namespace shardwise::sim
