#pragma once

#include <string>
#include <string_view>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The values of a YAML text of one document, with their places. Scalars without quotes have the
/// kinds that set_plain_scalar() gives them. Refused: control characters, anchors and aliases,
/// tags, keys that are no scalars, merge keys, duplicate keys, a second document, nesting deeper
/// than 64, more values than a JSON text may have.
/// \param file  the name put into diagnostics
Result<JsonValue> parse_yaml(std::string_view text, const std::string& file);

}  // namespace shardwise
