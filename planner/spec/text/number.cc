#include "planner/spec/text/number.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <system_error>
#include <utility>

#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The whole text as std::from_chars reads it.
template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

template <std::integral Integer>
std::optional<Integer> parse_whole(std::string_view text) {
  if (const std::optional<Integer> digits = whole<Integer>(text)) return digits;
  const std::optional<double> number = parse_number(text);
  if (!number || std::trunc(*number) != *number) return std::nullopt;
  if (std::abs(*number) > kLargestExactInteger) return std::nullopt;
  if (std::unsigned_integral<Integer> && *number < 0) return std::nullopt;
  return static_cast<Integer>(*number);
}

/// As a message quotes it: in quotation marks when it would not be seen without them.
std::string quoted_text(std::string_view text) {
  const bool plain = !text.empty() && text.find(' ') == std::string_view::npos;
  return plain ? shown(text) : fmt::format("\"{}\"", shown(text));
}

template <class Number>
std::string take(std::string_view text, std::optional<Number> parsed, std::string_view kind,
                 Number low, Number high, Number& value) {
  if (!parsed || !(*parsed >= low && *parsed <= high)) {
    return fmt::format("{} is not {} from {} to {}", quoted_text(text), kind, low, high);
  }
  value = *parsed;
  return "";
}

/// The same letters, whatever their case.
bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> kUnits = {
      {{"B", 1},
       {"KB", 1'000},
       {"MB", 1'000'000},
       {"GB", 1'000'000'000},
       {"TB", 1'000'000'000'000},
       {"KiB", std::int64_t{1} << 10},
       {"MiB", std::int64_t{1} << 20},
       {"GiB", std::int64_t{1} << 30},
       {"TiB", std::int64_t{1} << 40}}};
  for (const auto& [name, bytes] : kUnits) {
    if (same_word(unit, name)) return bytes;
  }
  return std::nullopt;
}

/// The bytes of "1.5GiB"; nothing when it is no size or 2^63 bytes and more.
std::optional<std::int64_t> parse_size(std::string_view text, Bytes bare) {
  const std::size_t end = text.find_last_of("0123456789.") + 1;  // 0 when there is none
  const std::string_view digits = text.substr(0, end);
  std::string_view unit = text.substr(end);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::optional<std::int64_t> each =
      end == text.size() ? std::optional(bare.value()) : unit_bytes(unit);
  if (!each) return std::nullopt;
  std::int64_t bytes = 0;
  if (const std::optional<std::int64_t> count = parse_integer(digits)) {
    if (__builtin_mul_overflow(*count, *each, &bytes)) return std::nullopt;
    return bytes;
  }
  const std::optional<double> number = parse_number(digits);
  if (!number) return std::nullopt;
  const double product = *number * static_cast<double>(*each);
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (!(product > -kBeyond && product < kBeyond)) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> number = whole<double>(text);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return *number + 0.0;  // -0 is 0
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::string read_number(std::string_view text, double low, double high, double& value) {
  return take(text, parse_number(text), "a number", low, high, value);
}

std::string read_integer(std::string_view text, std::int64_t low, std::int64_t high,
                         std::int64_t& value) {
  return take(text, parse_integer(text), "an integer", low, high, value);
}

std::string read_unsigned(std::string_view text, std::uint64_t low, std::uint64_t high,
                          std::uint64_t& value) {
  return take(text, parse_unsigned(text), "an integer", low, high, value);
}

std::string read_size(std::string_view text, Bytes bare, Bytes low, Bytes high, Bytes& value) {
  const std::optional<std::int64_t> bytes = parse_size(text, bare);
  if (bytes && *bytes >= low.value() && *bytes <= high.value()) {
    value = Bytes(*bytes);
    return "";
  }
  return fmt::format("{} is not a size from {} to {}, such as 500MB or 70GiB", quoted_text(text),
                     format_bytes(low), format_bytes(high));
}

}  // namespace shardwise
