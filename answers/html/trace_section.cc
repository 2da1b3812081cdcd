#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kRows = 12;

std::string steps_table(const StepComparison& step) {
  HtmlTable table({{"of a device", Align::left}, {"measured"}, {"predicted"}, {"difference"}});
  const auto cells = [](const char* name, Seconds measured, Seconds predicted) {
    return std::vector<HtmlCell>{name, format_seconds(measured), format_seconds(predicted),
                                 signed_seconds(predicted - measured)};
  };
  const StepProfile& a = step.measured;
  const StepProfile& b = step.predicted;
  table.row(cells("computing", a.computing, b.computing));
  table.row(cells("exposed communication", a.exposed, b.exposed));
  table.row(cells("idle", a.idle, b.idle));
  table.total(cells("step", a.length, b.length));
  return table.text("class=\"operations\"");
}

std::string kinds_table(const StepComparison& step) {
  HtmlTable table({{"kind", Align::left},
                   {"phase", Align::left},
                   {"count"},
                   {"measured"},
                   {"count"},
                   {"predicted"},
                   {"difference"}});
  const auto time = [](const std::optional<KindTime>& side) {
    return side ? format_seconds(side->exposed) : std::string("-");
  };
  const auto count = [](const std::optional<KindTime>& side) {
    return side ? format_count(side->count) : std::string();
  };
  for (std::size_t i = 0; i < std::min(step.kinds.size(), kRows); ++i) {
    const ComparedKind& row = step.kinds[i];
    table.row({std::string(name_of(row.kind)),
               step.by_phase ? std::string(name_of(row.phase)) : std::string(), count(row.measured),
               time(row.measured), count(row.predicted), time(row.predicted),
               signed_seconds(row.difference())});
  }
  return table.text("class=\"operations\"") +
         "<p class=\"quiet\">Communication: the part that compute does not hide.</p>\n";
}

}  // namespace

std::string operations_table(const std::vector<ComparedTime>& rows) {
  HtmlTable table(
      {{"operation", Align::left}, {"stage"}, {"measured"}, {"predicted"}, {"difference"}});
  for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    const ComparedTime& row = rows[i];
    table.row({row.name, std::to_string(row.stage), row.in_first ? format_seconds(row.first) : "-",
               row.in_second ? format_seconds(row.second) : "-", signed_seconds(row.difference())});
  }
  std::string made = table.text("class=\"operations\"");
  if (rows.size() > kRows) {
    made += fmt::format("<p class=\"quiet\">The {} of {} operations that differ most.</p>\n", kRows,
                        format_count(static_cast<std::int64_t>(rows.size())));
  }
  return made;
}

std::string trace_section(const PageContent& page) {
  if (page.trace == nullptr) return "";
  const TraceComparison& found = *page.trace;
  const StepComparison& step = found.step;
  std::string made = fmt::format(
      "<p>The traced step is {}, the predicted one {}: <b>{}</b> of the traced time.</p>\n",
      format_seconds(step.measured.length), format_seconds(step.predicted.length),
      signed_percent(step.predicted.length / step.measured.length - 1));
  if (!found.same_plan) made += "<p class=\"warning\">The trace is of another plan.</p>\n";
  made += steps_table(step) + kinds_table(step);
  if (!found.operations.empty()) made += operations_table(found.operations);
  return section("trace", "Predicted beside traced", fmt::format("stage {}", found.stage), made);
}

}  // namespace shardwise::sim
