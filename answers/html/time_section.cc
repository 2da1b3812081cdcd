#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/comparison/compare.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/palette.h"

namespace shardwise::sim {
namespace {

/// Of a part in the picture of the step.
Paint paint_of(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Paint>, 9> kParts = {{
      {"forward", Paint::forward},
      {"backward", Paint::backward},
      {"recompute", Paint::recompute},
      {"tp_exposed", Paint::layer},
      {"cp_exposed", Paint::layer},
      {"ep_exposed", Paint::layer},
      {"pp_exposed", Paint::message},
      {"dp_exposed", Paint::reduce},
      {"optimizer", Paint::optimizer},
  }};
  const auto* const found =
      std::ranges::find(kParts, key, [](const auto& each) { return each.first; });
  return found == kParts.end() ? Paint::copy : found->second;
}

std::string bar(std::string_view key, double share, double measured) {
  const std::string fill =
      key == "bubble" ? "idle" : fmt::format("p{}", static_cast<std::size_t>(paint_of(key)));
  std::string made = fmt::format(
      "<span class=\"track\"><span class=\"stack predicted\"><i class=\"{}\" "
      "style=\"width:{:.3f}%\"></i></span>",
      fill, 100 * share);
  if (measured > 0) {
    made += fmt::format(
        "<span class=\"stack measured\"><i class=\"{}\" style=\"width:{:.3f}%\"></i></span>", fill,
        100 * measured);
  }
  return made + "</span>";
}

HtmlCell time_cell(Seconds time) {
  return time == Seconds(0) ? HtmlCell("-", Tone::quiet) : HtmlCell(format_seconds(time));
}

std::string parts_table(const StepReport& report, const StepReport* measured) {
  std::vector<HtmlColumn> columns = {{"", Align::left}, {"", Align::left}, {"time"}, {"share"}};
  if (measured != nullptr) {
    columns.emplace_back("measured");
    columns.emplace_back("difference");
  }
  HtmlTable table(std::move(columns));
  Seconds most;
  for (const TimePart& part : kTimeParts) {
    most = std::max(most, report.time.*part.field);
    if (measured != nullptr) most = std::max(most, measured->time.*part.field);
  }
  const std::string nothing = format_seconds(Seconds(0));
  for (const TimePart& part : kTimeParts) {
    const Seconds time = report.time.*part.field;
    const Seconds ran = measured != nullptr ? measured->time.*part.field : Seconds(0);
    if (format_seconds(time) == nothing && format_seconds(ran) == nothing) continue;
    std::vector<HtmlCell> cells{
        std::string(part.label),
        HtmlCell::of_markup(bar(part.key, std::max(0.0, time / most), ran / most)), time_cell(time),
        format_percent(time / report.step_time)};
    if (measured != nullptr) {
      cells.push_back(time_cell(ran));
      cells.emplace_back(signed_seconds(time - ran));
    }
    table.row(cells);
  }
  std::vector<HtmlCell> total{
      "step", "", {format_seconds(report.step_time), Tone::strong}, format_percent(1)};
  if (measured != nullptr) {
    total.emplace_back(format_seconds(measured->step_time), Tone::strong);
    total.emplace_back(signed_seconds(report.step_time - measured->step_time));
  }
  table.total(total);
  return table.text("class=\"parts\"");
}

std::string axes_table(const StepReport& report) {
  HtmlTable table({{"communication", Align::left}, {"alone"}, {"exposed"}, {"hidden"}});
  for (const AxisTime& axis : report.by_axis) {
    const double hidden =
        axis.total > Seconds(0) ? std::max(0.0, 1 - axis.exposed / axis.total) : 0;
    table.row({axis.axis, time_cell(axis.total), time_cell(axis.exposed), format_percent(hidden)});
  }
  return table.text("class=\"axes\"");
}

}  // namespace

std::string time_section(const PageContent& page) {
  const StepReport& report = page.report();
  std::string made = parts_table(report, page.measured);
  if (page.measured != nullptr) {
    made +=
        "<p class=\"quiet\">The thin bar is measured. Differences are predicted less "
        "measured.</p>\n";
  }
  if (!report.by_axis.empty()) {
    made += axes_table(report) +
            "<p class=\"quiet\">Exposed: communication while nothing computes.</p>\n";
  }
  return section("time", "Time of a step", report.stages.size() > 1 ? "on the slowest stage" : "",
                 made);
}

std::string measured_section(const PageContent& page) {
  if (page.measured == nullptr) return "";
  const Comparison both = compare(*page.measured, page.report());
  std::string made = fmt::format(
      "<p>The predicted step is {}, the measured one {}: <b>{}</b> of the measured time.</p>\n",
      format_seconds(both.second_step), format_seconds(both.first_step),
      signed_percent(both.relative()));
  for (const Assumption& each : page.measured->assumptions) {  // why times may mean nothing
    if (each.id.starts_with("device.")) {
      made += "<p class=\"warning\">" + escaped(each.text) + "</p>\n";
    }
  }
  if (!both.operations.empty()) made += operations_table(both.operations);
  return section("measured", "Predicted beside measured", "", made);
}

}  // namespace shardwise::sim
