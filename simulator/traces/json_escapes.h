#pragma once

#include <string>
#include <string_view>

namespace shardwise::sim {

/// What a JSON string says, of what stands between its quotes. \returns false when a backslash is
/// before what it does not go with, or half a surrogate pair is alone. \pre the string ends with no
/// backslash of its own
bool unescape_json(std::string_view raw, std::string& text);

}  // namespace shardwise::sim
