#pragma once

#include <string>
#include <string_view>

#include "planner/spec/json/reader.h"

namespace shardwise {

/// Gives a value the kind that PyYAML's safe_load gives a scalar without quotes (YAML 1.1): yes and
/// off are booleans, 017 is 15, 0x1F 31, 1_000 a thousand, 1:30 ninety, 1e3 a text and 1.0e+3 a
/// number. Dates stay texts: no setting is one.
/// \returns what is wrong with it, empty if nothing: .inf and .nan, which no setting is and JSON
/// has
///          no word for; digits that PyYAML refuses; "=" and "<<".
/// Source: PyYAML 6.0.3, resolver.py and constructor.py.
std::string set_plain_scalar(std::string_view text, JsonValue& value);

}  // namespace shardwise
