#include "planner/spec/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardwise {
namespace {

/// Length of the UTF-8 sequence that starts at `text[i]`, 0 when it is not one.
/// Source: The Unicode Standard, table 3-7 (well-formed byte sequences).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) -> unsigned {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  const auto within = [](unsigned b, unsigned low, unsigned high) { return b >= low && b <= high; };
  const auto follows = [&](std::size_t k) { return within(byte(k), 0x80, 0xBF); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (within(first, 0xC2, 0xDF)) return follows(1) ? 2 : 0;
  if (within(first, 0xE0, 0xEF)) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return within(byte(1), low, high) && follows(2) ? 3 : 0;
  }
  if (within(first, 0xF0, 0xF4)) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return within(byte(1), low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t first_not_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) break;
    i += length;
  }
  return i;
}

bool has_control_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) return true;
    if (text.substr(i, 3) == "\u2028" || text.substr(i, 3) == "\u2029") return true;
  }
  return false;
}

std::string shown(std::string_view text, std::size_t most) {
  std::string safe;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = std::max<std::size_t>(sequence_length(text, i), 1);
    if (i + length > most) return safe + "…";
    const unsigned first = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F steer terminals as the ASCII controls do.
    const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (text[i] == '\n') {
      safe += "\\n";
    } else if (first < 0x20 || first == 0x7F) {
      safe += fmt::format("\\u{:04x}", first);
    } else if (c1) {
      safe +=
          fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(text[i + 1])));
    } else if (length == 1 && first >= 0x80) {
      safe += fmt::format("\\x{:02x}", first);
    } else {
      safe += text.substr(i, length);
    }
    i += length;
  }
  return safe;
}

}  // namespace shardwise
