#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Writes one JSON text, member by member in the order given, indented by two spaces. Numbers are
/// written so that they read back equal; a number that is not finite is null.
///
///     JsonWriter json;
///     json.begin_object();
///     json.member("schema", "shardwise.report/1");
///     json.begin_array("stages");
///     for (…) json.element(…);
///     json.end_array();
///     json.end_object();
///     std::string text = json.text();
class JsonWriter {
 public:
  void begin_object();                      // the root, or an element of an array
  void begin_object(std::string_view key);  // a member
  void end_object();
  void begin_array();
  void begin_array(std::string_view key);
  void end_array();

  void member(std::string_view key, std::string_view value);
  void member(std::string_view key, const char* value) { member(key, std::string_view(value)); }
  void member(std::string_view key, double value);
  template <std::same_as<bool> T>
  void member(std::string_view key, T value) {
    name(key);
    text_ += value ? "true" : "false";
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void member(std::string_view key, T value) {
    name(key);
    integer(static_cast<std::int64_t>(value));
  }
  void null_member(std::string_view key);
  /// \param json  the text of a value, on one line: see json_line()
  void json_member(std::string_view key, std::string_view json);

  /// An array on one line.
  void row(std::string_view key, const std::vector<std::int64_t>& values);

  void element(std::string_view value);
  void element(std::int64_t value);
  void element(double value);

  /// The text, with a newline at its end. \pre every object and array was ended
  std::string text() const;

 private:
  void next_line();  // before an element or a key
  void name(std::string_view key);
  void open(char bracket);
  void close(char bracket);
  void quoted(std::string_view value);
  void number(double value);
  void integer(std::int64_t value);

  std::string text_;
  int depth_ = 0;
  bool first_ = true;  // nothing was written yet into the innermost object or array
};

}  // namespace shardwise
