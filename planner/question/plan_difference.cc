#include "planner/question/plan_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

using Field = PricedDifference::Field;

/// A difference and how a plan takes it over.
struct Change {
  Field field;
  std::function<void(Plan&)> take;
};

/// The fields of a job as they stand in a plan.json.
JsonValue job_members(const JobSpec& job) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, job);
  json.end_object();
  const std::string text = json.text();
  const Result<JsonValue> read = parse_json(text, "job");
  return read ? *read : JsonValue();
}

std::string shown_value(const JsonValue& value) {
  const bool has_text =
      value.kind != JsonValue::Kind::null && value.kind != JsonValue::Kind::object;
  return has_text ? text_of(value) : "-";
}

void add_job_changes(const Plan& a, const Plan& b, std::vector<Change>& changes) {
  const JsonValue first = job_members(a.job);
  const JsonValue second = job_members(b.job);
  for (const JsonMember& member : second.members) {
    const JsonValue* before = first.find(member.key);
    const std::string was = before == nullptr ? "-" : shown_value(*before);
    const std::string is = shown_value(member.value);
    if (was == is) continue;
    changes.push_back({{member.key, was, is}, [member](Plan& plan) {
                         JsonValue object;
                         object.kind = JsonValue::Kind::object;
                         object.members = job_members(plan.job).members;
                         for (JsonMember& each : object.members) {
                           if (each.key == member.key) each.value = member.value;
                         }
                         Diagnostics problems;
                         ObjectReader reader(object, "job", "", problems);
                         read_fields(reader, plan.job);
                       }});
  }
}

std::vector<Change> changes_of(const Plan& a, const Plan& b) {
  std::vector<Change> changes;
  if (a.model != b.model) {
    changes.push_back(
        {{"model", a.model.name, b.model.name}, [&b](Plan& to) { to.model = b.model; }});
  }
  if (a.cluster != b.cluster) {
    const auto words = [](const ClusterSpec& cluster) {
      return fmt::format("{} x {}", cluster.gpus, cluster.name);
    };
    changes.push_back({{"cluster", words(a.cluster), words(b.cluster)},
                       [&b](Plan& to) { to.cluster = b.cluster; }});
  }
  if (a.engine != b.engine) {
    changes.push_back(
        {{"engine", a.engine.name, b.engine.name}, [&b](Plan& to) { to.engine = b.engine; }});
  }
  add_job_changes(a, b, changes);
  for (const std::string& key : layout_keys()) {
    const std::string second = field_text(b.layout, key);
    const std::string first = field_text(a.layout, key);
    if (first == second) continue;
    changes.push_back(
        {{key, first, second}, [key, second](Plan& to) { set_field(to.layout, key, second); }});
  }
  return changes;
}

StepReport estimated(const Plan& plan) {
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

std::optional<StepReport> priced(const Plan& plan) {
  if (!check_plan(plan).empty()) return std::nullopt;
  return estimated(plan);
}

}  // namespace

PlanDifferences plan_differences(const Plan& a, const Plan& b) {
  const StepReport first = estimated(a);
  const StepReport second = estimated(b);
  PlanDifferences made;
  made.first_step = first.step_time;
  made.second_step = second.step_time;
  made.first_memory = first.verdict.point;
  made.second_memory = second.verdict.point;
  made.time_left = second.step_time - first.step_time;
  made.memory_left = second.verdict.point - first.verdict.point;
  const auto add = [&](PricedDifference row, const std::optional<StepReport>& changed) {
    if (changed) {
      row.legal = true;
      row.time = changed->step_time - first.step_time;
      row.memory = changed->verdict.point - first.verdict.point;
      made.time_left -= row.time;
      made.memory_left -= row.memory;
    }
    made.rows.push_back(std::move(row));
  };
  Plan together = a;
  PricedDifference bound;  // legal with one another only
  for (const Change& change : changes_of(a, b)) {
    Plan plan = a;
    change.take(plan);
    if (const std::optional<StepReport> changed = priced(plan)) {
      add({{change.field}, false, {}, {}}, changed);
    } else {
      change.take(together);
      bound.fields.push_back(change.field);
    }
  }
  if (!bound.fields.empty()) add(std::move(bound), priced(together));
  std::ranges::stable_sort(made.rows, std::ranges::greater(),
                           [](const PricedDifference& row) { return std::abs(row.time.value()); });
  return made;
}

}  // namespace shardwise
