#include "planner/legality/refusals.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/cost/software/engine_configs.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

std::vector<EngineRefusal> read_refusals() {
  constexpr const char* kName = "refusals.json";
  const Result<JsonValue> json = parse_json(refusals_config(), kName);
  SHARDWISE_CHECK(json.ok(), kName);
  Diagnostics problems;
  ObjectReader root(*json, kName, "", problems);
  root.require_schema("shardwise.refusals/1");
  root.string("sources");
  std::vector<EngineRefusal> all;
  const JsonValue& rules = *root.object("rules");
  ObjectReader by_rule = root.nested("rules", rules);
  for (const auto& [rule, places] : rules.members) {
    for (const JsonValue& place : places.elements) {
      ObjectReader reader = by_rule.nested(rule, place);
      EngineRefusal refusal{rule, {}, reader.string("code"), reader.string("at")};
      for (const JsonValue& engine : reader.array("engines")->elements) {
        refusal.engines.push_back(engine.string);
      }
      reader.reject_unknown();
      all.push_back(std::move(refusal));
    }
  }
  root.reject_unknown();
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  return all;
}

}  // namespace

std::span<const EngineRefusal> engine_refusals() {
  static const std::vector<EngineRefusal> kAll = read_refusals();
  return kAll;
}

const EngineRefusal* engine_refusal(std::string_view engine, std::string_view rule) {
  for (const EngineRefusal& each : engine_refusals()) {
    if (each.rule == rule && std::ranges::find(each.engines, engine) != each.engines.end()) {
      return &each;
    }
  }
  return nullptr;
}

std::string refused_at(std::span<const std::string> engines, std::string_view rule) {
  for (const std::string& engine : engines) {
    if (const EngineRefusal* refusal = engine_refusal(engine, rule)) return refusal->at;
  }
  return "";
}

std::string refusal_clause(std::string_view engine, std::string_view rule) {
  const EngineRefusal* refusal = engine_refusal(engine, rule);
  return refusal == nullptr ? "" : fmt::format(" ({}:{})", refusal->code, refusal->at);
}

}  // namespace shardwise
