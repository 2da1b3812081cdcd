#include <fmt/format.h>

#include <string>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {

std::string levers_section(const PageContent& page) {
  if (page.levers == nullptr || page.answer == nullptr || page.answer->best.empty()) return "";
  const auto price = [](double dollars) { return dollars > 0 ? format_dollars(dollars) : "-"; };
  const PlanRow& best = page.answer->best.front();
  HtmlTable table({HtmlColumn("change", Align::left), HtmlColumn("step"), HtmlColumn("of the step"),
                   HtmlColumn("memory"), HtmlColumn("$/1e9 tokens")});
  table.row({"the best layout as it is", format_seconds(best.step()), "",
             format_bytes(best.candidate.cost.point), price(best.dollars_per_1e9_tokens)});
  for (const HelpfulChange& each : *page.levers) {
    if (each.faster < kLeastHelp) continue;
    table.row({each.text,
               (each.estimated ? "~ " : "") + format_seconds(each.step),
               {signed_percent(-each.faster), Tone::good},
               format_bytes(each.memory),
               price(each.dollars_per_1e9_tokens)});
  }
  std::string made = "<div class=\"wide\">\n" + table.text() + "</div>\n";
  const std::string little = little_help_words(*page.levers);
  if (!little.empty()) {
    made += fmt::format("<p class=\"quiet\">Others are {}.</p>\n", escaped(little));
  }
  return section("levers", "What would help most",
                 "each change alone; ~: by the step-time model, not simulated", made);
}

}  // namespace shardwise::sim
