#include "simulator/traces/json_escapes.h"

#include <algorithm>
#include <cstddef>

namespace shardwise::sim {
namespace {

/// The four hexadecimal digits at `text[at]`, -1 when they are not.
int hexadecimal(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return -1;
  int code = 0;
  for (const char c : text.substr(at, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

void append_utf8(std::string& text, int code) {
  const auto byte = [&text](int value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace

bool unescape_json(std::string_view raw, std::string& text) {
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  text.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text += raw[i];
      continue;
    }
    ++i;  // a string's last character is no backslash
    if (raw[i] != 'u') {
      const std::size_t which = kNames.find(raw[i]);
      if (which == std::string_view::npos) return false;
      text += kMeant[which];
      continue;
    }
    int code = hexadecimal(raw, i + 1);
    i += 4;
    if (code < 0 || (code >= 0xDC00 && code < 0xE000)) return false;
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
      if (raw.substr(std::min(i + 1, raw.size()), 2) != "\\u") return false;
      const int low = hexadecimal(raw, i + 3);
      if (low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      i += 6;
    }
    append_utf8(text, code);
  }
  return true;
}

}  // namespace shardwise::sim
