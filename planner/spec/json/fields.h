#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/enum_names.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {

/// Converts to any field of an aggregate; for field_count only.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(*explicit*)
};
/// How many fields the aggregate T has. Beside a list of fields,
///     static_assert(field_count<Layout>() == 26, "list the new field above");
/// makes a field that was added and not listed an error.
template <class T, class... Fields>
consteval std::size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; }) {
    return field_count<T, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

/// Reads the fields of an object, checked; FieldWriter has the same calls and writes them. A type
/// lists its fields once and has both:
///
///     template <class Io, class T>  // T is Layout or const Layout
///     void list_fields(Io& io, T& layout) {
///       io.integer("tp", layout.tp, 1, kMaxRanks);
///       io.choice("recompute", layout.recompute);
///     }
///
/// An absent key leaves the field as it is, unless it is required.
class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(ObjectReader& reader) : reader_(reader) {}

  /// The keys that must be there; everything else has a default.
  void require(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!reader_.has(key)) reader_.fail(key, "missing");
    }
  }

  template <std::integral T>
  void integer(std::string_view key, T& value, std::int64_t low, std::int64_t high) {
    value = static_cast<T>(reader_.integer_or(key, static_cast<std::int64_t>(value), low, high));
  }
  void number(std::string_view key, double& value, double low, double high) {
    value = reader_.number_or(key, value, low, high);
  }
  void boolean(std::string_view key, bool& value) { value = reader_.boolean_or(key, value); }
  /// false (0), true (1) or an integer of 2 to `high`.
  void switch_or_count(std::string_view key, std::int32_t& value, std::int64_t high) {
    value = static_cast<std::int32_t>(reader_.switch_or_count_or(key, value, high));
  }
  void text(std::string_view key, std::string& value) { value = reader_.string_or(key, value); }
  /// A whole number that earlier versions wrote and that nothing ever read: accepted, not written.
  void retired(std::string_view key) { reader_.integer_or(key, 0, 0, INT32_MAX); }

  template <class E>
  void choice(std::string_view key, E& value) {
    value = static_cast<E>(reader_.choice_or(key, static_cast<std::size_t>(value), names_of<E>()));
  }

  template <class E>
  void choices(std::string_view key, std::vector<E>& values) {
    std::vector<std::string> names;
    for (const E value : values) names.emplace_back(name_of(value));
    texts(key, names);
    values.clear();
    for (const std::string& name : names) {
      const std::optional<E> value = from_name<E>(name);
      if (!value) return reader_.fail(key, "\"" + name + "\" is not one of the choices");
      values.push_back(*value);
    }
  }

  /// Integers, each within `low` and `high`.
  template <std::integral T>
  void integers(std::string_view key, std::vector<T>& values, std::int64_t low, std::int64_t high) {
    const JsonValue* list = reader_.array(key, false);
    if (list == nullptr) return;
    values.clear();
    for (const JsonValue& each : list->elements) {
      const bool fits =
          each.kind == JsonValue::Kind::integer && each.integer >= low && each.integer <= high;
      if (!fits) {
        reader_.fail(key, "holds something that is not an integer of " + std::to_string(low) +
                              " to " + std::to_string(high));
        return;
      }
      values.push_back(static_cast<T>(each.integer));
    }
  }
  /// The same, written on one line: many that belong together.
  template <std::integral T>
  void integer_row(std::string_view key, std::vector<T>& values, std::int64_t low,
                   std::int64_t high) {
    integers(key, values, low, high);
  }
  void texts(std::string_view key, std::vector<std::string>& values) {
    const JsonValue* list = reader_.array(key, false);
    if (list == nullptr) return;
    values.clear();
    for (const JsonValue& each : list->elements) {
      if (each.kind != JsonValue::Kind::string) {
        return reader_.fail(key, "holds something that is not a string");
      }
      if (has_control_character(each.string)) {
        return reader_.fail(key, '"' + shown(each.string) + "\" has a control character",
                            "use one line of text");
      }
      values.push_back(each.string);
    }
  }

  /// A nested object, whose fields `list` lists: list(io, value).
  template <class T, class List>
  void object(std::string_view key, T& value, List list) {
    const JsonValue* found = reader_.object(key, false);
    if (found == nullptr) return;
    ObjectReader nested = reader_.nested(key, *found);
    read_into(nested, value, list);
  }
  /// An array of at most `most` objects.
  template <class T, class List>
  void objects(std::string_view key, std::vector<T>& values, std::size_t most, List list) {
    const JsonValue* found = reader_.array(key, false);
    if (found == nullptr) return;
    values.clear();
    if (found->elements.size() > most) {
      return reader_.fail(key, std::to_string(found->elements.size()) + " entries",
                          "use " + std::to_string(most) + " at most");
    }
    for (std::size_t i = 0; i < found->elements.size(); ++i) {
      ObjectReader nested = reader_.nested(key, i, found->elements[i]);
      read_into(nested, values.emplace_back(), list);
    }
  }

  /// For what must hold between fields; only where kReads.
  void fail(std::string_view key, std::string message, std::string hint = {}) {
    reader_.fail(key, std::move(message), std::move(hint));
  }

 private:
  template <class T, class List>
  static void read_into(ObjectReader& reader, T& value, List list) {
    FieldReader io(reader);
    list(io, value);
    reader.reject_unknown();
  }

  ObjectReader& reader_;
};

/// Writes the fields that FieldReader reads, all of them, in the order they are listed.
class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

  void require(std::initializer_list<std::string_view>) {}
  template <std::integral T>
  void integer(std::string_view key, const T& value, std::int64_t, std::int64_t) {
    json_.member(key, static_cast<std::int64_t>(value));
  }
  void number(std::string_view key, const double& value, double, double) {
    json_.member(key, value);
  }
  void boolean(std::string_view key, const bool& value) { json_.member(key, value); }
  void switch_or_count(std::string_view key, const std::int32_t& value, std::int64_t) {
    if (value > 1) {
      json_.member(key, std::int64_t{value});
    } else {
      json_.member(key, value == 1);
    }
  }
  void text(std::string_view key, const std::string& value) { json_.member(key, value); }
  void retired(std::string_view) {}
  template <class E>
  void choice(std::string_view key, const E& value) {
    json_.member(key, name_of(value));
  }
  template <class E>
  void choices(std::string_view key, const std::vector<E>& values) {
    json_.begin_array(key);
    for (const E value : values) json_.element(name_of(value));
    json_.end_array();
  }
  template <std::integral T>
  void integers(std::string_view key, const std::vector<T>& values, std::int64_t, std::int64_t) {
    json_.begin_array(key);
    for (const T value : values) json_.element(static_cast<std::int64_t>(value));
    json_.end_array();
  }
  template <std::integral T>
  void integer_row(std::string_view key, const std::vector<T>& values, std::int64_t, std::int64_t) {
    json_.row(key, {values.begin(), values.end()});
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    json_.begin_array(key);
    for (const std::string& value : values) json_.element(std::string_view(value));
    json_.end_array();
  }
  template <class T, class List>
  void object(std::string_view key, const T& value, List list) {
    json_.begin_object(key);
    list(*this, value);
    json_.end_object();
  }
  template <class T, class List>
  void objects(std::string_view key, const std::vector<T>& values, std::size_t, List list) {
    json_.begin_array(key);
    for (const T& value : values) {
      json_.begin_object();
      list(*this, value);
      json_.end_object();
    }
    json_.end_array();
  }

 private:
  JsonWriter& json_;
};

}  // namespace shardwise
