#include "planner/export/configuration/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kDigitsAndLines = "0123456789_";

template <std::size_t kCount>
bool is_one_of(std::string_view text, const std::array<std::string_view, kCount>& words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_digit(char c) { return kDigits.find(c) != std::string_view::npos; }

/// Whether all characters are among `known`, and there is one.
bool only(std::string_view text, std::string_view known) {
  return !text.empty() && text.find_first_not_of(known) == std::string_view::npos;
}

std::string without_lines(std::string_view text) {
  std::string made(text);
  std::erase(made, '_');
  return made;
}

/// ":30:15", each of one or two digits, the first of two below 6.
bool is_sixties(std::string_view text) {
  while (!text.empty()) {
    if (text.front() != ':') return false;
    text.remove_prefix(1);
    const std::size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
    if (digits < 1 || digits > 2 || (digits == 2 && text.front() > '5')) return false;
    text.remove_prefix(digits);
  }
  return true;
}

/// The value of "1:30" or "1:30.5".
double sixties(const std::string& text) {
  double made = 0;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(':', from), text.size());
    std::string part = text.substr(from, end - from);
    if (part.ends_with('.')) part += '0';
    made = made * 60 + parse_number(part).value_or(0);
    from = end + 1;
  }
  return made;
}

/// What a number is made of besides its sign.
struct YamlNumber {
  bool negative = false;
  std::string_view digits;
};

YamlNumber split(std::string_view text) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  return {text.starts_with('-'), sign ? text.substr(1) : text};
}

void set_real(const YamlNumber& number, double size, JsonValue& value) {
  value.kind = JsonValue::Kind::number;
  value.number = number.negative ? -size : size;
}

/// An integer; as a real number where 64 bits do not hold it.
void set_integer(const YamlNumber& number, std::string_view digits, int base, JsonValue& value) {
  const std::string text = (number.negative ? "-" : "") + std::string(digits);
  std::int64_t made = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), made, base);
  if (end.ec == std::errc()) {
    value.kind = JsonValue::Kind::integer;
    value.integer = made;
    value.number = static_cast<double>(made);
    return;
  }
  double size = 0;
  for (const char c : digits) {
    const int digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
    size = size * base + digit;
  }
  set_real(number, size, value);
}

bool is_float(std::string_view text) {
  const std::string_view digits = split(text).digits;
  const std::size_t point = digits.find('.');
  if (point == std::string_view::npos) return false;
  const std::string_view whole = digits.substr(0, point);
  std::string_view rest = digits.substr(point + 1);
  if (const std::size_t sixty = whole.find(':'); sixty != std::string_view::npos) {
    return is_digit(whole.front()) && only(whole.substr(0, sixty), kDigitsAndLines) &&
           is_sixties(whole.substr(sixty)) && (rest.empty() || only(rest, kDigitsAndLines));
  }
  if (const std::size_t e = rest.find_first_of("eE"); e != std::string_view::npos) {
    const std::string_view exponent = rest.substr(e + 1);
    const bool is_signed = exponent.starts_with('+') || exponent.starts_with('-');
    if (!is_signed || !only(exponent.substr(1), kDigits)) return false;
    rest = rest.substr(0, e);
  }
  const bool fraction = rest.empty() || only(rest, kDigitsAndLines);
  if (!whole.empty()) return fraction && is_digit(whole.front()) && only(whole, kDigitsAndLines);
  return digits.size() == text.size() && !rest.empty() && fraction && is_digit(rest.front());
}

/// \returns whether it is an integer; `wrong` if it is one that PyYAML then refuses
bool take_integer(std::string_view text, JsonValue& value, bool& wrong) {
  const YamlNumber number = split(text);
  const std::string_view digits = number.digits;
  const auto take = [&](std::string_view all, int base) {
    const std::string plain = without_lines(all);
    wrong = plain.empty();
    if (!wrong) set_integer(number, plain, base, value);
    return true;
  };
  if (digits.starts_with("0b") && only(digits.substr(2), "01_")) return take(digits.substr(2), 2);
  if (digits.starts_with("0x") && only(digits.substr(2), "0123456789abcdefABCDEF_")) {
    return take(digits.substr(2), 16);
  }
  if (digits.size() > 1 && digits.front() == '0' && only(digits.substr(1), "01234567_")) {
    return take(digits, 8);
  }
  if (digits.empty() || !is_digit(digits.front())) return false;
  if (digits == "0") return take(digits, 10);
  if (digits.front() == '0') return false;
  if (only(digits, kDigitsAndLines)) return take(digits, 10);
  const std::size_t sixty = digits.find(':');
  if (sixty == std::string_view::npos || !only(digits.substr(0, sixty), kDigitsAndLines) ||
      !is_sixties(digits.substr(sixty))) {
    return false;
  }
  const double size = sixties(without_lines(digits));
  if (size >= 1e18) {
    set_real(number, size, value);
  } else {
    set_integer(number, fmt::format("{:.0f}", size), 10, value);
  }
  return true;
}

}  // namespace

std::string set_plain_scalar(std::string_view text, JsonValue& value) {
  constexpr std::array<std::string_view, 5> kNull = {"", "null", "Null", "NULL", "~"};
  constexpr std::array<std::string_view, 9> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                     "YES",  "on",   "On",   "ON"};
  constexpr std::array<std::string_view, 9> kFalse = {"false", "False", "FALSE", "no", "No",
                                                      "NO",    "off",   "Off",   "OFF"};
  constexpr std::array<std::string_view, 3> kInfinite = {".inf", ".Inf", ".INF"};
  constexpr std::array<std::string_view, 3> kNoNumber = {".nan", ".NaN", ".NAN"};
  if (is_one_of(text, kNull)) return "";
  const bool yes = is_one_of(text, kTrue);
  if (yes || is_one_of(text, kFalse)) {
    value.kind = JsonValue::Kind::boolean;
    value.boolean = yes;
    return "";
  }
  if (is_one_of(split(text).digits, kInfinite) || is_one_of(text, kNoNumber)) {
    return fmt::format("{}, which is no value of a setting", text);
  }
  if (text == "=" || text == "<<") return fmt::format("{} without quotes", text);
  bool wrong = false;
  if (is_float(text)) {
    const YamlNumber number = split(text);
    std::string digits = without_lines(number.digits);
    const bool sixty = digits.find(':') != std::string::npos;
    // parse_number wants digits around the point: "1.", ".5" and "1.e+3" have them nowhere else.
    if (digits.starts_with('.')) digits.insert(0, 1, '0');
    const std::size_t behind = digits.find('.') + 1;
    if (behind == digits.size() || !is_digit(digits[behind])) digits.insert(behind, 1, '0');
    const std::optional<double> size = sixty ? sixties(digits) : parse_number(digits);
    if (!size || !std::isfinite(*size)) return fmt::format("{}: too large", shown(text));
    set_real(number, *size, value);
  } else if (take_integer(text, value, wrong)) {
    if (wrong) return fmt::format("{} is no number", shown(text));
  } else {
    value.kind = JsonValue::Kind::string;
    value.string = text;
  }
  return "";
}

}  // namespace shardwise
