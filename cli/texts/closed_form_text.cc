#include "cli/texts/closed_form_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

constexpr double kLeastShown = 0.001;  // of the step

void add(Table& table, std::string label, Seconds closed_form, Seconds simulated) {
  const auto time = [](Seconds t) {
    return t == Seconds(0) ? std::string("-") : format_seconds(t);
  };
  table.row({std::move(label), time(closed_form), time(simulated),
             signed_seconds(simulated - closed_form)});
}

}  // namespace

std::string closed_form_text(const StepReport& report, bool colour) {
  if (!report.closed_form) return "";
  const ClosedForm& closed = *report.closed_form;
  Table table(
      {{"estimate and simulation", Align::left}, {"estimated"}, {"simulated"}, {"difference"}});
  for (const MechanismTime& each : closed.mechanisms) {
    add(table, each.mechanism, each.closed_form, each.simulated);
  }
  table.rule();
  add(table, "step", closed.step_time, report.step_time);
  bool any = false;
  for (const TimePart& part : kTimeParts) {
    const Seconds by_closed_form = closed.time.*part.field;
    const Seconds on_clock = report.time.*part.field;
    const bool shown = std::abs((on_clock - by_closed_form) / report.step_time) > kLeastShown;
    if (!shown) continue;
    if (!any) table.rule();
    any = true;
    add(table, std::string(part.label), by_closed_form, on_clock);
  }
  return "\n" + table.text(colour, 2);
}

}  // namespace shardwise::cli
