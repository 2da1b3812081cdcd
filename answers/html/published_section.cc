#include <fmt/format.h>

#include <string>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::sim {

std::string published_section(const PageContent& page) {
  if (page.published == nullptr || page.published->empty()) return "";
  const auto cell = [](std::optional<double> error) -> HtmlCell {
    return error ? signed_percent(*error) : std::string("-");
  };
  HtmlTable table({HtmlColumn("published run", Align::left), HtmlColumn("GPUs"),
                   HtmlColumn("framework", Align::left), HtmlColumn("step"), HtmlColumn("memory")});
  for (const PublishedFigure& each : *page.published) {
    table.row({each.model, fmt::format("{} x {}", format_count(each.gpus), each.gpu),
               each.framework, cell(each.time_error), cell(each.memory_error)});
  }
  const TypicalErrors typical = typical_errors(*page.published);
  std::string words;
  const auto say = [&](std::optional<double> error, const char* what) {
    if (!error) return;
    words += fmt::format("{}{} of {}", words.empty() ? "" : ", ", format_percent(*error), what);
  };
  say(typical.time, "a step's time");
  say(typical.memory, "its memory");
  return section("published", "How wrong such predictions were",
                 "predicted less measured, of the measured: runs that are most like this one",
                 fmt::format("<p>Typical (the median of their sizes): {}. Times are by the "
                             "step-time model.</p>\n<div class=\"wide\">\n{}</div>\n",
                             words, table.text()));
}

}  // namespace shardwise::sim
