#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardwise {

/// Offset of the first byte that is not well-formed UTF-8; text.size() when there is none.
std::size_t first_not_utf8(std::string_view text);

/// Whether `text` has a character that steers a terminal, ends a line or turns the direction of
/// reading: U+0000 to 001F, U+007F to 009F, U+2028, U+2029, bidirectional marks and controls.
bool has_control_character(std::string_view text);

/// `text` as a message may show it: those characters escaped, so that a file can neither steer the
/// terminal nor pass for other text, and cut with "…" after `most` bytes.
std::string shown(std::string_view text, std::size_t most = 60);

}  // namespace shardwise
