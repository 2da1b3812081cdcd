#include <fmt/format.h>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/text/format.h"
#include "simulator/comparison/tiles.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/timeline_svg.h"

namespace shardwise::sim {

std::string section(std::string_view id, std::string_view heading, std::string_view note,
                    const std::string& markup) {
  std::string made = fmt::format("<section id=\"{}\">\n<h2>{}", id, escaped(heading));
  if (!note.empty()) made += fmt::format(" <small>{}</small>", escaped(note));
  return made + "</h2>\n" + markup + "</section>\n";
}

std::string folded(std::string_view summary, const std::string& markup) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), markup);
}

std::string tiles_section(const PageContent& page) {
  std::string made = "<section id=\"tiles\">\n<dl class=\"tiles\">\n";
  for (const Tile& tile : tiles(*page.plan, page.report(), page.measured)) {
    made += fmt::format(
        "<div id=\"tile-{}\"><dt>{}</dt><dd class=\"value {}\">{}</dd><dd class=\"note\">{}</dd>",
        tile.id, escaped(tile.label), tone_class(tile.tone), escaped(tile.value),
        escaped(tile.note));
    if (!tile.measured.empty()) {
      made += fmt::format("<dd class=\"measured\">measured {} <b>{}</b></dd>",
                          escaped(tile.measured), escaped(tile.error));
    }
    made += "</div>\n";
  }
  return made + "</dl>\n</section>\n";
}

std::string step_section(const PageContent& page) {
  return section("step", "The step", "a block's tooltip has its time",
                 "<div class=\"wide\">\n" +
                     timeline_svg(*page.plan, *page.simulation, TimelineTitle::left_out) +
                     "</div>\n");
}

std::string reasons_section(const PageContent& page) {
  std::string made;
  if (!page.report().assumptions.empty()) {
    std::string list = "<ul class=\"reasons\">\n";
    for (const Assumption& each : page.report().assumptions) {
      list += fmt::format("<li>{}<cite>{}</cite></li>\n", escaped(each.text), escaped(each.source));
    }
    const std::size_t count = page.report().assumptions.size();
    made += folded(fmt::format("{} assumption{}", count, count == 1 ? "" : "s"), list + "</ul>\n");
  }
  if (page.estimate != nullptr && !page.estimate->explanations.empty()) {
    HtmlTable table({{"number", Align::left},
                     {"formula", Align::left},
                     {"values", Align::left},
                     {"source", Align::left}});
    for (const Explanation& each : page.estimate->explanations) {
      table.row({each.subject, each.formula, each.values, {each.source, Tone::quiet}});
    }
    made += folded(fmt::format("{} formulas with their values, of the closed-form estimate",
                               page.estimate->explanations.size()),
                   table.text("class=\"formulas\""));
  }
  return made.empty() ? "" : section("reasons", "Assumptions and formulas", "", made);
}

}  // namespace shardwise::sim
