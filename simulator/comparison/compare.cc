#include "simulator/comparison/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/report_fields.h"

namespace shardwise::sim {
namespace {

/// Rows by name and stage; what one report lacks takes no time in it.
class Join {
 public:
  void add(const std::string& name, std::int32_t stage, Seconds time, bool second) {
    const auto [at, fresh] = rows_.try_emplace({name, stage});
    ComparedTime& row = at->second;
    if (fresh) row = {name, stage, stage, {}, {}, false, false};
    (second ? row.second : row.first) += time;
    (second ? row.in_second : row.in_first) = true;
  }
  std::vector<ComparedTime> sorted() const {
    std::vector<ComparedTime> rows = moved();
    std::stable_sort(rows.begin(), rows.end(), [](const ComparedTime& a, const ComparedTime& b) {
      return std::abs(a.difference().value()) > std::abs(b.difference().value());
    });
    return rows;
  }

 private:
  /// With one row instead of two for what is on one stage in the first and on another in the
  /// second.
  std::vector<ComparedTime> moved() const {
    std::vector<ComparedTime> rows;
    std::size_t begin = 0;  // of the rows of one name
    for (const auto& keyed : rows_) {
      const ComparedTime& row = keyed.second;
      if (begin < rows.size() && rows[begin].name != row.name) begin = rows.size();
      const auto other = std::find_if(
          rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end(), [&](const auto& each) {
            return each.in_first != row.in_first && each.in_second != row.in_second;
          });
      if (other == rows.end()) {
        rows.push_back(row);
      } else if (row.in_second) {
        other->second = row.second;
        other->second_stage = row.second_stage;
        other->in_second = true;
      } else {
        other->first = row.first;
        other->stage = row.stage;
        other->in_first = true;
      }
    }
    return rows;
  }

  std::map<std::pair<std::string, std::int32_t>, ComparedTime> rows_;
};

/// \param own  without what libraries take besides
Bytes peak_of(const StepReport& report, bool own) {
  Bytes peak;
  for (const StageMemory& stage : report.stages) {
    if (!own) peak = std::max(peak, stage.peak_total());
    for (const Ledger& phase : stage.phases) {
      if (own) peak = std::max(peak, phase.reserved());
    }
  }
  return peak;
}

void write_rows(JsonWriter& json, const char* key, const std::vector<ComparedTime>& rows) {
  json.begin_array(key);
  for (const ComparedTime& row : rows) write_row(json, row, "first_s", "second_s");
  json.end_array();
}

void write_time(JsonWriter& json, const char* key, Seconds time, bool there) {
  if (there) {
    json.member(key, time.value());
  } else {
    json.null_member(key);
  }
}

}  // namespace

Comparison compare(const StepReport& first, const StepReport& second) {
  Comparison made;
  made.first_step = first.step_time;
  made.second_step = second.step_time;
  made.own_memory = first.origin != second.origin;
  made.first_peak = peak_of(first, made.own_memory);
  made.second_peak = peak_of(second, made.own_memory);
  Join parts;
  Join axes;
  Join operations;
  for (const bool is_second : {false, true}) {
    const StepReport& report = is_second ? second : first;
    for (const TimePart& part : kTimeParts) {
      const Seconds time = report.time.*part.field;
      if (time != Seconds(0)) parts.add(std::string(part.key), 0, time, is_second);
    }
    for (const AxisTime& axis : report.by_axis) axes.add(axis.axis, 0, axis.exposed, is_second);
    if (!report.timeline) continue;
    for (const OperationTime& op : report.timeline->operations) {
      operations.add(op.name, op.stage, op.time, is_second);
    }
  }
  made.parts = parts.sorted();
  made.axes = axes.sorted();
  if (first.timeline && second.timeline) made.operations = operations.sorted();
  return made;
}

void write_row(JsonWriter& json, const ComparedTime& row, const char* first, const char* second) {
  json.begin_object();
  json.member("name", row.name);
  json.member("stage", row.stage);
  json.member("second_stage", row.second_stage);
  write_time(json, first, row.first, row.in_first);
  write_time(json, second, row.second, row.in_second);
  json.member("difference_s", row.difference().value());
  json.end_object();
}

std::string comparison_json(const Comparison& comparison) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.comparison/1");
  json.member("first_step_s", comparison.first_step.value());
  json.member("second_step_s", comparison.second_step.value());
  json.member("relative", comparison.relative());
  json.member("first_peak_bytes", comparison.first_peak.value());
  json.member("second_peak_bytes", comparison.second_peak.value());
  write_rows(json, "parts", comparison.parts);
  write_rows(json, "exposed", comparison.axes);
  write_rows(json, "operations", comparison.operations);
  json.end_object();
  return json.text();
}

}  // namespace shardwise::sim
