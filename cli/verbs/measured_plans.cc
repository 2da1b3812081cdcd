#include "cli/verbs/measured_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "answers/plan_columns.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kLongestRefusal = 160;

/// Columns of a layout that tell these rows apart; their step and memory are in columns of this
/// table.
sim::ToldColumns layout_columns(std::span<const MeasuredPlan> plans) {
  std::vector<sim::PlanRow> rows;
  for (const MeasuredPlan& each : plans) rows.push_back(each.row);
  sim::ToldColumns told = sim::told_columns(rows, false);
  std::erase_if(told.columns, [](const sim::PlanColumn* each) {
    return each->key == "step" || each->key == "model" || each->key == "mfu" ||
           each->key == "memory" || each->key == "cost";
  });
  return told;
}

std::string tau_text(std::span<const MeasuredPlan> plans) {
  const std::optional<double> tau = kendall_tau(plans);
  if (!tau) return "";
  return fmt::format(", Kendall's tau of the order {:.2f}", *tau);
}

}  // namespace

std::optional<double> median_error(std::span<const MeasuredPlan> plans) {
  std::vector<double> errors;
  for (const MeasuredPlan& each : plans) {
    if (each.measured) errors.push_back(std::abs(each.error()));
  }
  if (errors.empty()) return std::nullopt;
  std::ranges::sort(errors);
  const std::size_t middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

std::optional<double> kendall_tau(std::span<const MeasuredPlan> plans) {
  std::vector<std::pair<Seconds, Seconds>> steps;
  for (const MeasuredPlan& each : plans) {
    if (each.measured) steps.emplace_back(each.predicted.step_time, each.measured->step_time);
  }
  if (steps.size() < 3) return std::nullopt;
  std::int64_t in_order = 0;
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double way =
          (steps[i].first - steps[j].first).value() * (steps[i].second - steps[j].second).value();
      in_order += (way > 0 ? 1 : 0) - (way < 0 ? 1 : 0);
      ++pairs;
    }
  }
  return static_cast<double>(in_order) / static_cast<double>(pairs);
}

std::string measured_text(std::span<const MeasuredPlan> plans, bool colour) {
  const sim::ToldColumns told = layout_columns(plans);
  std::vector<Column> headings = {{"#"}};
  for (const sim::PlanColumn* each : told.columns) {
    headings.push_back({std::string(each->heading), each->words ? Align::left : Align::right});
  }
  for (const char* heading : {"step", "measured", "error", "memory", "measured"}) {
    headings.push_back({heading});
  }
  Table table(std::move(headings));
  std::string refused;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const MeasuredPlan& plan = plans[i];
    std::vector<Cell> cells = {std::to_string(i + 1)};
    for (const sim::PlanColumn* each : told.columns) {
      cells.emplace_back(each->text(sim::priced(plan.row)));
    }
    cells.emplace_back(format_seconds(plan.predicted.step_time));
    cells.emplace_back(plan.measured ? format_seconds(plan.measured->step_time) : "-");
    cells.emplace_back(plan.measured ? signed_percent(plan.error()) : "-");
    cells.emplace_back(format_bytes(plan.predicted.verdict.point));
    cells.emplace_back(plan.measured ? format_bytes(plan.measured->verdict.point) : "-");
    table.row(std::move(cells));
    if (!plan.measured) {
      refused += fmt::format("{} did not run: {}\n", i + 1, shown(plan.refused, kLongestRefusal));
    }
  }
  std::string text = table.text(colour);
  if (!told.in_all.empty()) text += fmt::format("all: {}\n", fmt::join(told.in_all, ", "));
  text += refused;
  if (const std::optional<double> error = median_error(plans)) {
    text += fmt::format("median error of the step {}{}\n", format_percent(*error), tau_text(plans));
  }
  return text;
}

std::string measured_json(std::span<const MeasuredPlan> plans, std::int64_t steps) {
  JsonWriter json;
  const auto number = [&](std::string_view key, const std::optional<double>& value) {
    value ? json.member(key, *value) : json.null_member(key);
  };
  json.begin_object();
  json.member("schema", "shardwise.measured_plans/1");
  json.member("steps", steps);
  json.begin_array("plans");
  for (const MeasuredPlan& each : plans) {
    const auto measured = [&](auto value_of) {
      return each.measured ? std::optional<double>(value_of(*each.measured)) : std::nullopt;
    };
    json.begin_object();
    json.member("engine", each.row.engine);
    json.member("predicted_step_time_s", each.predicted.step_time.value());
    number("measured_step_time_s",
           measured([](const StepReport& r) { return r.step_time.value(); }));
    json.member("predicted_memory_bytes", each.predicted.verdict.point.value());
    if (each.measured) {
      json.member("measured_memory_bytes", each.measured->verdict.point.value());
    } else {
      json.null_member("measured_memory_bytes");
    }
    json.member("refused", each.refused);
    json.begin_object("layout");
    write_fields(json, each.row.candidate.layout);
    json.end_object();
    json.end_object();
  }
  json.end_array();
  number("median_error", median_error(plans));
  number("kendall_tau", kendall_tau(plans));
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
