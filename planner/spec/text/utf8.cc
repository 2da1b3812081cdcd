#include "planner/spec/text/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

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

/// A character of a text: how many bytes it has, and its code point, nothing for a byte that is not
/// well-formed UTF-8.
struct Character {
  std::size_t length = 1;
  std::optional<std::uint32_t> code;

  /// Whether it is one that has_control_character() looks for.
  bool steers() const;
};

Character character_at(std::string_view text, std::size_t at) {
  const std::size_t length = sequence_length(text, at);
  if (length == 0) return {};
  const auto first = static_cast<unsigned char>(text[at]);
  std::uint32_t code = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t k = 1; k < length; ++k) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + k]) & 0x3FU);
  }
  return {length, code};
}

// Source: The Unicode Standard, 23.1 (control codes) and 5.8 (line and paragraph separators);
// Unicode Standard Annex 9, 2 (directional formatting characters).
bool Character::steers() const {
  if (!code) return false;
  const auto within = [&](std::uint32_t low, std::uint32_t high) {
    return *code >= low && *code <= high;
  };
  const bool control = *code < 0x20 || within(0x7F, 0x9F);
  const bool line_end = within(0x2028, 0x2029);
  const bool direction =
      *code == 0x061C || within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069);
  return control || line_end || direction;
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
  for (std::size_t i = 0; i < text.size();) {
    const Character each = character_at(text, i);
    if (each.steers()) return true;
    i += each.length;
  }
  return false;
}

std::string shown(std::string_view text, std::size_t most) {
  std::string safe;
  for (std::size_t i = 0; i < text.size();) {
    const Character each = character_at(text, i);
    if (i + each.length > most) return safe + "…";
    if (text[i] == '\n') {
      safe += "\\n";
    } else if (!each.code) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    } else if (each.steers()) {
      safe += fmt::format("\\u{:04x}", *each.code);
    } else {
      safe += text.substr(i, each.length);
    }
    i += each.length;
  }
  return safe;
}

}  // namespace shardwise
