#include "planner/spec/json/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/spec/text/check.h"

namespace shardwise {

void JsonWriter::next_line() {
  if (depth_ == 0) return;
  if (!first_) text_ += ',';
  text_ += '\n';
  text_.append(2 * static_cast<std::size_t>(depth_), ' ');
  first_ = false;
}

void JsonWriter::name(std::string_view key) {
  next_line();
  quoted(key);
  text_ += ": ";
}

void JsonWriter::open(char bracket) {
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  SHARDWISE_CHECK(depth_ > 0, text_);
  --depth_;
  if (!first_) {
    text_ += '\n';
    text_.append(2 * static_cast<std::size_t>(depth_), ' ');
  }
  text_ += bracket;
  first_ = false;
}

void JsonWriter::begin_object() {
  next_line();
  open('{');
}
void JsonWriter::begin_object(std::string_view key) {
  name(key);
  open('{');
}
void JsonWriter::end_object() { close('}'); }

void JsonWriter::begin_array() {
  next_line();
  open('[');
}
void JsonWriter::begin_array(std::string_view key) {
  name(key);
  open('[');
}
void JsonWriter::end_array() { close(']'); }

void JsonWriter::member(std::string_view key, std::string_view value) {
  name(key);
  quoted(value);
}
void JsonWriter::member(std::string_view key, double value) {
  name(key);
  number(value);
}
void JsonWriter::null_member(std::string_view key) {
  name(key);
  text_ += "null";
}

void JsonWriter::row(std::string_view key, const std::vector<std::int64_t>& values) {
  name(key);
  text_ += fmt::format("[{}]", fmt::join(values, ", "));
}

void JsonWriter::json_member(std::string_view key, std::string_view json) {
  name(key);
  text_ += json;
}

void JsonWriter::element(std::string_view value) {
  next_line();
  quoted(value);
}
void JsonWriter::element(std::int64_t value) {
  next_line();
  integer(value);
}
void JsonWriter::element(double value) {
  next_line();
  number(value);
}

// Source: RFC 8259, section 7.
void JsonWriter::quoted(std::string_view value) {
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void JsonWriter::number(double value) {
  // fmt's default is the shortest text that reads back equal; "-0" would read back as the integer
  // 0.
  text_ += std::isfinite(value) ? fmt::format("{}", value == 0 ? 0.0 : value) : "null";
}

void JsonWriter::integer(std::int64_t value) { text_ += fmt::format("{}", value); }

std::string JsonWriter::text() const {
  SHARDWISE_CHECK(depth_ == 0, std::to_string(depth_));
  return text_ + "\n";
}

}  // namespace shardwise
