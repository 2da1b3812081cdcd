#pragma once

#include <string>
#include <string_view>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The values of a YAML text of one document, with their places. Scalars without quotes have the
/// kinds that set_plain_scalar() gives them. An alias is a copy of its anchor's value that stands
/// where the alias does; values inside it, and those of a merge key, keep their places. Refused:
/// control characters, tags, keys that are no scalars, duplicate keys, an alias of the value that
/// it stands in, a second document, nesting deeper than 64, more values than a JSON text may have.
/// \param file  the name put into diagnostics
Result<JsonValue> parse_yaml(std::string_view text, const std::string& file);

}  // namespace shardwise
