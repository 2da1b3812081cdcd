#include "cli/texts/plan_difference_text.h"

#include <fmt/format.h>

#include <cstddef>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kValueWidth = 14;

std::string cut(const std::string& text) {
  return text.size() <= kValueWidth ? text : text.substr(0, kValueWidth - 1) + "…";
}

}  // namespace

std::string plan_differences_text(const PlanDifferences& found, bool colour) {
  std::string text =
      fmt::format("A  {} a step, {}\nB  {} a step, {}\n", format_seconds(found.first_step),
                  format_bytes(found.first_memory), format_seconds(found.second_step),
                  format_bytes(found.second_memory));
  if (found.rows.empty()) return text + "the plans have the same fields\n";
  Table table(
      {{"field", Align::left}, {"A", Align::left}, {"B", Align::left}, {"step"}, {"memory"}});
  for (const PricedDifference& row : found.rows) {
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      const PricedDifference::Field& field = row.fields[i];
      const bool last = i + 1 == row.fields.size();
      table.row({field.key, cut(field.first), cut(field.second),
                 !last       ? "|"
                 : row.legal ? signed_seconds(row.time)
                             : "not alone",
                 !last       ? "|"
                 : row.legal ? signed_bytes(row.memory)
                             : "-"});
    }
  }
  table.row({"together, beyond these", "", "", signed_seconds(found.time_left),
             signed_bytes(found.memory_left)});
  table.rule();
  table.row({"B - A", "", "", signed_seconds(found.second_step - found.first_step),
             signed_bytes(found.second_memory - found.first_memory)});
  return text + "\n" + table.text(colour) +
         "each row: A with B's value alone, estimated; |: priced with the rows below it\n";
}

std::string plan_differences_json(const PlanDifferences& found) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.plan_differences/1");
  json.member("first_step_s", found.first_step.value());
  json.member("second_step_s", found.second_step.value());
  json.member("first_memory_bytes", found.first_memory.value());
  json.member("second_memory_bytes", found.second_memory.value());
  json.begin_array("differences");
  for (const PricedDifference& row : found.rows) {
    json.begin_object();
    json.begin_array("fields");
    for (const PricedDifference::Field& field : row.fields) {
      json.begin_object();
      json.member("field", field.key);
      json.member("first", field.first);
      json.member("second", field.second);
      json.end_object();
    }
    json.end_array();
    json.member("legal", row.legal);
    if (row.legal) {
      json.member("step_time_change_s", row.time.value());
      json.member("memory_change_bytes", row.memory.value());
    } else {
      json.null_member("step_time_change_s");
      json.null_member("memory_change_bytes");
    }
    json.end_object();
  }
  json.end_array();
  json.member("together_step_time_change_s", found.time_left.value());
  json.member("together_memory_change_bytes", found.memory_left.value());
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
