#pragma once

#include <string>
#include <string_view>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// parse_json for files that Python wrote, as every Hugging Face config.json is: `NaN`, `Infinity`
/// and `-Infinity` are numbers too. A getter with a range refuses them, so that they pass only
/// under keys that have no reader.
/// Source: Python's json module, JSONEncoder(allow_nan=True), which is its default.
Result<JsonValue> parse_python_json(std::string_view text, const std::string& file);

}  // namespace shardwise
