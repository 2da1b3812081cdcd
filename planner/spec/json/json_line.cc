#include "planner/spec/json/json_line.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace shardwise {
namespace {

/// Source: PyYAML's resolver for the form, RFC 8259, section 6, for what JSON takes of it.
std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  const std::size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) {
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

/// The code point below U+10000 that starts at `text[i]`, and its length; 0 of others.
/// \pre text is UTF-8
std::pair<unsigned, std::size_t> code_at(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xE0) return {(byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU), 2};
  if (byte(0) < 0xF0) {
    return {(byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU), 3};
  }
  return {0, 4};
}

/// Controls, line ends, and what YAML has no characters for.
bool needs_escape(unsigned code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string line = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto [code, length] = code_at(text, i);
    if (code == '"' || code == '\\') {
      line += '\\';
      line += text[i];
    } else if (code == '\n') {
      line += "\\n";
    } else if (length < 4 && needs_escape(code)) {
      line += fmt::format("\\u{:04x}", code);
    } else {
      line += text.substr(i, length);
    }
    i += length;
  }
  return line + '"';
}

std::string json_line(const JsonValue& value) {
  std::string line;
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::integer:
      return std::to_string(value.integer);
    case JsonValue::Kind::number:
      return number_text(value.number);
    case JsonValue::Kind::string:
      return json_quoted(value.string);
    case JsonValue::Kind::array:
      for (const JsonValue& each : value.elements) {
        line += (line.empty() ? "" : ", ") + json_line(each);
      }
      return "[" + line + "]";
    case JsonValue::Kind::object:
      break;
  }
  for (const JsonMember& each : value.members) {
    line += (line.empty() ? "" : ", ") + json_quoted(each.key) + ": " + json_line(each.value);
  }
  return "{" + line + "}";
}

}  // namespace shardwise
