#include "planner/spec/plan/plan.h"

#include <string_view>
#include <utility>

#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/cluster_writer.h"
#include "planner/spec/plan/model_lists.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/plan/problems_in_file.h"
#include "planner/spec/text/sha256.h"

namespace shardwise {
namespace {

template <class T>
void read_part(ObjectReader& plan, std::string_view key, T& part) {
  const JsonValue* value = plan.object(key);
  if (value == nullptr) return;
  ObjectReader reader = plan.nested(key, *value);
  read_fields(reader, part);
}

template <class T>
void write_part(JsonWriter& json, std::string_view key, const T& part) {
  json.begin_object(key);
  write_fields(json, part);
  json.end_object();
}

/// Of a plan.json, or of the plan in a page.
Result<JsonValue> read_plan_json(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path);
  if (text && is_page(*text)) text = plan_in_page(*text, path.string());
  if (!text) return text.problems();
  return parse_json(*text, path.string());
}

}  // namespace

std::string to_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.plan/1");
  write_part(json, "layout", plan.layout);
  write_part(json, "job", plan.job);
  write_part(json, "engine", plan.engine);
  json.begin_object("cluster");
  write_cluster(json, plan.cluster);
  json.end_object();
  write_part(json, "model", plan.model);
  if (!plan.kept.framework.empty()) write_part(json, "kept", plan.kept);
  json.end_object();
  return json.text();
}

Result<Plan> plan_from_json(const JsonValue& root, const std::string& file) {
  Diagnostics problems;
  ObjectReader reader(root, file, "", problems);
  reader.require_schema("shardwise.plan/1");
  const JsonValue* const schema = root.find("schema");
  if (!problems.empty() && schema != nullptr && schema->string.starts_with("shardwise.report/")) {
    problems.back().hint = "a report has no plan in it: give the plan.json that it is of";
  }
  Plan plan;
  read_part(reader, "layout", plan.layout);
  read_part(reader, "job", plan.job);
  read_part(reader, "engine", plan.engine);
  if (const JsonValue* value = reader.object("cluster")) {
    Result<ClusterSpec> cluster = cluster_from_json(*value, file, "/cluster");
    if (cluster) {
      plan.cluster = *std::move(cluster);
    } else {
      problems.insert(problems.end(), cluster.problems().begin(), cluster.problems().end());
    }
  }
  read_part(reader, "model", plan.model);
  if (const JsonValue* value = reader.object("kept", false)) {
    ObjectReader nested = reader.nested("kept", *value);
    read_fields(nested, plan.kept);
  }
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  Diagnostics broken = check_model_lists(plan.model);
  if (!broken.empty()) return problems_in_file(std::move(broken), root, file);
  return plan;
}

Result<Plan> read_plan(const std::filesystem::path& path) {
  const Result<JsonValue> json = read_plan_json(path);
  if (!json) return json.problems();
  return plan_from_json(*json, path.string());
}

Result<Plan> read_plan(const std::filesystem::path& path, const PlanRules& rules) {
  const Result<JsonValue> json = read_plan_json(path);
  if (!json) return json.problems();
  Result<Plan> plan = plan_from_json(*json, path.string());
  if (!plan) return plan;
  Diagnostics broken = rules(*plan);
  if (!broken.empty()) return problems_in_file(std::move(broken), *json, path.string());
  return plan;
}

std::string digest(const Plan& plan) { return sha256(to_json(plan)); }

}  // namespace shardwise
