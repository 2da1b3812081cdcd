#pragma once

#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// The plan of a text.
inline Result<Plan> reread(const std::string& text) {
  const Result<JsonValue> json = parse_json(text, "plan.json");
  if (!json) return json.problems();
  return plan_from_json(*json, "plan.json");
}

}  // namespace shardwise
