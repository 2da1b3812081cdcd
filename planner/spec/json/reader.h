#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

struct JsonMember;

/// One value of a JSON text, with the place it was read from. Members keep the order of the file.
struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

  Kind kind = Kind::null;
  int line = 0;    // 1-based
  int column = 0;  // 1-based, of the value's first character
  bool boolean = false;
  std::int64_t integer = 0;  // when kind == integer
  double number = 0;         // when kind == integer or number
  std::string string;        // when kind == string
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;

  const JsonValue* find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// JSON pointer of the member `key` of the object (or array) at `object`. Source: RFC 6901.
std::string json_pointer(const std::string& object, std::string_view key);

/// Reads a whole file. Throws IoError when the file exists but cannot be read; a missing file is a
/// Diagnostic. Files over 100 MB are refused.
Result<std::string> read_file(const std::filesystem::path& path);

/// The most values of a file that people write. A value takes about 130 bytes in memory but two in
/// a file: without a limit a file of 100 MB could ask for 6 GB.
inline constexpr std::size_t kMostJsonValues = 1'000'000;

/// Parses one JSON text. Refuses: not UTF-8, truncated, trailing text, duplicate keys, nesting
/// deeper than 64, more than `most_values`, integers that do not fit 64 bits, numbers that are
/// not finite.
/// \param file  the name put into diagnostics
Result<JsonValue> parse_json(std::string_view text, const std::string& file,
                             std::size_t most_values = kMostJsonValues);

/// read_file, then parse_json.
Result<JsonValue> read_json(const std::filesystem::path& path,
                            std::size_t most_values = kMostJsonValues);

/// Reads the members of one JSON object with types and ranges checked, and gathers every problem
/// instead of stopping at the first. Getters return `fallback` (or the zero or empty value, kept
/// inside the range asked for) after a problem, so that the rest of the file is still checked. A
/// null is an absent value. Names (name, label, model, …) are one line: control characters are a
/// problem. Ranges include both ends. A number without a fraction (1e9, 8.0) is an integer. The
/// list stops at 100 problems.
class ObjectReader {
 public:
  /// A `value` that is not an object is a problem of its own; then every getter is silent.
  /// \param path  JSON pointer of `value` in `file`, "" for the root
  ObjectReader(const JsonValue& value, std::string file, std::string path, Diagnostics& problems);

  bool has(std::string_view key) const;  // present and not null

  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                          std::int64_t high);
  double number(std::string_view key, double low, double high);
  double number_or(std::string_view key, double fallback, double low, double high);
  bool boolean(std::string_view key);
  bool boolean_or(std::string_view key, bool fallback);
  /// false (0), true (1) or an integer of 2 to `high`.
  std::int64_t switch_or_count_or(std::string_view key, std::int64_t fallback, std::int64_t high);
  std::string string(std::string_view key);
  std::string string_or(std::string_view key, std::string_view fallback);
  /// A string that must be one of `allowed`; returns its index, 0 after a problem.
  std::size_t choice(std::string_view key, const std::vector<std::string_view>& allowed);
  std::size_t choice_or(std::string_view key, std::size_t fallback,
                        const std::vector<std::string_view>& allowed);

  /// The object or array under `key`, or nullptr (a problem when `required`).
  const JsonValue* object(std::string_view key, bool required = true);
  const JsonValue* array(std::string_view key, bool required = true);
  /// A reader of the object `value` under `key`, or of element `index` of the array under `key`.
  ObjectReader nested(std::string_view key, const JsonValue& value);
  ObjectReader nested(std::string_view key, std::size_t index, const JsonValue& value);

  /// Checks `"schema"` equals `expected` ("shardwise.plan/1"). After another schema the reader is
  /// silent: the file is of another kind.
  void require_schema(std::string_view expected);
  /// Every key not asked for so far (with a getter or has) is a problem, with the nearest known key
  /// as the hint.
  void reject_unknown();
  /// For files that carry many other keys: every key that nobody asked for, one letter from a key
  /// that was asked for and is absent, is a problem.
  void reject_slips();
  /// Adds a problem at the place of `key` (or of the object when the key is absent).
  void fail(std::string_view key, std::string message, std::string hint = {});
  /// Number of problems found by this reader and those nested in it is zero.
  bool ok() const;

  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }

 private:
  const JsonValue* lookup(std::string_view key, bool required);

  // The value under `key` when it is of `kind`; a problem and nullptr when it is not.
  const JsonValue* typed(std::string_view key, bool required, JsonValue::Kind kind);

  const JsonValue* value_;  // nullptr when it is not an object
  std::string file_;
  std::string path_;
  Diagnostics* problems_;
  std::size_t start_;
  mutable std::vector<std::string> known_;  // asked for
};

}  // namespace shardwise
