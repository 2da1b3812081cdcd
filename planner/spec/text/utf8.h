#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardwise {

/// Offset of the first byte that is not well-formed UTF-8; text.size() when there is none.
std::size_t first_not_utf8(std::string_view text);

/// Whether `text` has a character that steers a terminal or ends a line: U+0000 to U+001F, U+007F
/// to U+009F, and the line ends U+2028 and U+2029.
bool has_control_character(std::string_view text);

/// `text` as a message may show it: control characters escaped, so that a file cannot steer the
/// terminal, and cut with "…" after `most` bytes.
std::string shown(std::string_view text, std::size_t most = 60);

}  // namespace shardwise
