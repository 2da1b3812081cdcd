#pragma once

#include <string>
#include <string_view>

#include "planner/spec/json/reader.h"

namespace shardwise {

/// A value as JSON on one line, which reads back as the same value of the same type: 1.0 stays a
/// number with a fraction. YAML reads it as the same too: exponents have a sign and their number a
/// point, and what YAML takes for a line's end is escaped.
std::string json_line(const JsonValue& value);

/// A text so, in double quotes.
std::string json_quoted(std::string_view text);

}  // namespace shardwise
