#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

std::string_view kind_name(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return "true or false";
    case JsonValue::Kind::integer:
      return "an integer";
    case JsonValue::Kind::number:
      return "a number";
    case JsonValue::Kind::string:
      return "a string";
    case JsonValue::Kind::array:
      return "an array";
    case JsonValue::Kind::object:
      return "an object";
  }
  return "";
}

/// `value` as a message quotes it.
std::string quoted_value(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::integer:
      return std::to_string(value.integer);
    case JsonValue::Kind::number:
      if (std::isnan(value.number)) return "NaN";
      if (std::isinf(value.number)) return value.number < 0 ? "-Infinity" : "Infinity";
      return fmt::format("{}", value.number);
    case JsonValue::Kind::string:
      return fmt::format("\"{}\"", shown(value.string));
    case JsonValue::Kind::null:
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  return std::string(kind_name(value.kind));
}

/// What a file of others is by its keys; empty when nothing tells.
std::string_view known_file(const JsonValue& root) {
  if (root.find("traceEvents") != nullptr) return "a Chrome trace";
  const bool model = root.find("model_type") != nullptr || root.find("architectures") != nullptr;
  return model ? "a model's config.json" : "";
}

/// "a, b or c"
std::string alternatives(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

/// What would be right for a number outside its range.
template <class Number>
std::string range_hint(Number low, Number high) {
  const bool bounded = high < std::numeric_limits<Number>::max();
  return bounded ? fmt::format("use {} to {}", low, high) : fmt::format("use {} or more", low);
}

std::string slip_hint(std::string_view word, const std::vector<std::string>& known) {
  const std::optional<std::string> near = nearest(word, known);
  return near ? fmt::format("did you mean {}?", *near) : "";
}

}  // namespace

ObjectReader::ObjectReader(const JsonValue& value, std::string file, std::string path,
                           Diagnostics& problems)
    : value_(&value),
      file_(std::move(file)),
      path_(std::move(path)),
      problems_(&problems),
      start_(problems.size()) {
  if (value.kind == JsonValue::Kind::object) return;
  fail("", fmt::format("expected an object, found {}", quoted_value(value)));
  value_ = nullptr;
}

bool ObjectReader::ok() const {
  return problems_->size() == start_ && start_ < kMostListedProblems;
}

void ObjectReader::fail(std::string_view key, std::string message, std::string hint) {
  if (value_ == nullptr || problems_->size() >= kMostListedProblems) return;
  const JsonValue* at = key.empty() ? value_ : value_->find(key);
  if (at == nullptr) at = value_;
  problems_->push_back({file_, at->line, at->column,
                        shown(key.empty() ? path_ : json_pointer(path_, key), 200),
                        std::move(message), std::move(hint)});
}

const JsonValue* ObjectReader::lookup(std::string_view key, bool required) {
  known_.emplace_back(key);
  if (value_ == nullptr) return nullptr;
  const JsonValue* found = value_->find(key);
  if (found != nullptr && found->kind != JsonValue::Kind::null) return found;
  if (required) fail(key, found == nullptr ? "missing" : "null, but a value is needed");
  return nullptr;
}

const JsonValue* ObjectReader::typed(std::string_view key, bool required, JsonValue::Kind kind) {
  const JsonValue* found = lookup(key, required);
  if (found == nullptr) return nullptr;
  const bool fits = found->kind == kind ||
                    (kind == JsonValue::Kind::number && found->kind == JsonValue::Kind::integer);
  // Names go to terminals, scripts and pages; other texts, a tokenizer's among them, have any
  // lines.
  constexpr std::array<std::string_view, 7> kNames = {"name",       "label",     "model", "cluster",
                                                      "model_type", "framework", "engine"};
  const bool is_name =
      kind == JsonValue::Kind::string && std::ranges::find(kNames, key) != kNames.end();
  if (fits && is_name && has_control_character(found->string)) {
    fail(key, fmt::format("{} has a control character", quoted_value(*found)),
         "use one line of text");
    return nullptr;
  }
  if (fits) return found;
  fail(key, fmt::format("expected {}, found {}", kind_name(kind), quoted_value(*found)));
  return nullptr;
}

bool ObjectReader::has(std::string_view key) const {
  known_.emplace_back(key);
  const JsonValue* found = value_ == nullptr ? nullptr : value_->find(key);
  return found != nullptr && found->kind != JsonValue::Kind::null;
}

std::int64_t ObjectReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const std::int64_t zero = std::clamp<std::int64_t>(0, low, high);
  const JsonValue* found = lookup(key, true);
  return found == nullptr ? zero : integer_or(key, zero, low, high);
}

std::int64_t ObjectReader::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                      std::int64_t high) {
  const JsonValue* found = lookup(key, false);
  if (found == nullptr) return fallback;
  const bool is_number = found->kind == JsonValue::Kind::number;
  if (found->kind != JsonValue::Kind::integer &&
      !(is_number && std::trunc(found->number) == found->number)) {
    fail(key, fmt::format("expected an integer, found {}", quoted_value(*found)),
         range_hint(low, high));
    return fallback;
  }
  const bool small = is_number ? found->number < static_cast<double>(low) : found->integer < low;
  const bool large = is_number ? found->number > static_cast<double>(high) : found->integer > high;
  if (small || large) {
    fail(key, fmt::format("{} is too {}", quoted_value(*found), small ? "small" : "large"),
         range_hint(low, high));
    return fallback;
  }
  // Beyond 2^53 the digits that were written are lost.
  if (is_number && std::abs(found->number) > kLargestExactInteger) {
    fail(key, fmt::format("{} is too large to be exact", quoted_value(*found)),
         "write it without a fraction or exponent");
    return fallback;
  }
  return is_number ? static_cast<std::int64_t>(found->number) : found->integer;
}

double ObjectReader::number(std::string_view key, double low, double high) {
  const double zero = std::clamp(0.0, low, high);
  const JsonValue* found = lookup(key, true);
  return found == nullptr ? zero : number_or(key, zero, low, high);
}

double ObjectReader::number_or(std::string_view key, double fallback, double low, double high) {
  const JsonValue* found = lookup(key, false);
  if (found == nullptr) return fallback;
  if ((found->kind != JsonValue::Kind::integer && found->kind != JsonValue::Kind::number) ||
      std::isnan(found->number)) {
    fail(key, fmt::format("expected a number, found {}", quoted_value(*found)),
         range_hint(low, high));
    return fallback;
  }
  if (found->number >= low && found->number <= high) return found->number;
  fail(key,
       fmt::format("{} is too {}", quoted_value(*found), found->number < low ? "small" : "large"),
       range_hint(low, high));
  return fallback;
}

bool ObjectReader::boolean(std::string_view key) {
  const JsonValue* found = typed(key, true, JsonValue::Kind::boolean);
  return found != nullptr && found->boolean;
}

bool ObjectReader::boolean_or(std::string_view key, bool fallback) {
  const JsonValue* found = typed(key, false, JsonValue::Kind::boolean);
  return found == nullptr ? fallback : found->boolean;
}

std::int64_t ObjectReader::switch_or_count_or(std::string_view key, std::int64_t fallback,
                                              std::int64_t high) {
  const JsonValue* found = lookup(key, false);
  if (found == nullptr) return fallback;
  if (found->kind == JsonValue::Kind::boolean) return found->boolean ? 1 : 0;
  if (found->kind == JsonValue::Kind::integer) return integer_or(key, fallback, 2, high);
  fail(key, fmt::format("expected true, false or an integer, found {}", quoted_value(*found)));
  return fallback;
}

std::string ObjectReader::string(std::string_view key) {
  const JsonValue* found = typed(key, true, JsonValue::Kind::string);
  return found == nullptr ? "" : found->string;
}

std::string ObjectReader::string_or(std::string_view key, std::string_view fallback) {
  const JsonValue* found = typed(key, false, JsonValue::Kind::string);
  return found == nullptr ? std::string(fallback) : found->string;
}

std::size_t ObjectReader::choice(std::string_view key,
                                 const std::vector<std::string_view>& allowed) {
  return lookup(key, true) == nullptr ? 0 : choice_or(key, 0, allowed);
}

std::size_t ObjectReader::choice_or(std::string_view key, std::size_t fallback,
                                    const std::vector<std::string_view>& allowed) {
  const JsonValue* found = typed(key, false, JsonValue::Kind::string);
  if (found == nullptr) return fallback;
  const auto at = std::find(allowed.begin(), allowed.end(), found->string);
  if (at != allowed.end()) return static_cast<std::size_t>(at - allowed.begin());
  const std::string slip =
      slip_hint(found->string, std::vector<std::string>(allowed.begin(), allowed.end()));
  fail(key, fmt::format("{} is not one of the choices", quoted_value(*found)),
       slip.empty() ? "use " + alternatives(allowed) : slip);
  return fallback;
}

const JsonValue* ObjectReader::object(std::string_view key, bool required) {
  return typed(key, required, JsonValue::Kind::object);
}

const JsonValue* ObjectReader::array(std::string_view key, bool required) {
  return typed(key, required, JsonValue::Kind::array);
}

ObjectReader ObjectReader::nested(std::string_view key, const JsonValue& value) {
  return {value, file_, json_pointer(path_, key), *problems_};
}

ObjectReader ObjectReader::nested(std::string_view key, std::size_t index, const JsonValue& value) {
  return {value, file_, json_pointer(json_pointer(path_, key), std::to_string(index)), *problems_};
}

void ObjectReader::require_schema(std::string_view expected) {
  const JsonValue* found = lookup("schema", false);
  const bool of_model = expected.starts_with("shardwise.model/");
  const std::string_view other = value_ == nullptr || of_model ? "" : known_file(*value_);
  if (found == nullptr && !other.empty()) {
    const std::size_t noun = expected.find('.') + 1;
    fail("schema", fmt::format("missing: this is {}, no {} file", other,
                               expected.substr(noun, expected.find('/') - noun)));
  } else if (found == nullptr) {
    fail("schema", "missing", fmt::format("begin the file with \"schema\": \"{}\"", expected));
  } else if (found->kind != JsonValue::Kind::string || found->string != expected) {
    fail("schema", fmt::format("expected \"{}\", found {}", expected, quoted_value(*found)));
  } else {
    return;
  }
  value_ = nullptr;  // what else is wrong with a file of another kind is noise
}

void ObjectReader::reject_unknown() {
  if (value_ == nullptr) return;
  for (const auto& [key, value] : value_->members) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (problems_->size() >= kMostListedProblems) return;
    fail(key, "unknown field", slip_hint(key, known_));
  }
  for (const auto& [key, value] : value_->members) known_.push_back(key);  // said once
}

void ObjectReader::reject_slips() {
  if (value_ == nullptr) return;
  const auto asked = [this](const std::string& key) {
    return std::find(known_.begin(), known_.end(), key) != known_.end();
  };
  for (const auto& [key, value] : value_->members) {
    if (asked(key)) continue;
    for (const std::string& known : known_) {
      if (!is_one_slip(key, known) || value_->find(known) != nullptr) continue;
      if (problems_->size() >= kMostListedProblems) return;
      fail(key, fmt::format("unknown, and {} is absent", known),
           fmt::format("did you mean {}? if not, take the key out", known));
      break;
    }
  }
}

}  // namespace shardwise
