#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes at the begin of `text` that are no text; 0 where there are none.
std::size_t steering(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if (text.size() >= 2 && byte(0) == 0xC2 && byte(1) < 0xA0) return 2;  // U+0080 to U+009F
  if (text.size() < 3) return 0;
  const int last = byte(2);
  if (byte(0) == 0xE2 && byte(1) == 0x80) {
    const bool embeds = last >= 0xAA && last <= 0xAE;     // U+202A to U+202E
    const bool marks = last == 0x8E || last == 0x8F;      // U+200E and U+200F
    const bool separates = last == 0xA8 || last == 0xA9;  // U+2028 and U+2029
    return embeds || marks || separates ? 3 : 0;
  }
  if (byte(0) == 0xE2 && byte(1) == 0x81) return last >= 0xA6 && last <= 0xA9 ? 3 : 0;
  if (byte(0) == 0xEF && byte(1) == 0xBF) return last == 0xBE || last == 0xBF ? 3 : 0;
  return 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const std::size_t out = steering(text);
    if (out > 0) {
      made += kReplacement;
      text.remove_prefix(out);
      continue;
    }
    switch (const char c = text.front()) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      case '\'':
        made += "&#39;";
        break;
      default:
        made += c;
    }
    text.remove_prefix(1);
  }
  return made;
}

}  // namespace shardwise::sim
