#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/spec/text/units.h"

namespace shardwise {

// The one place where text that a person typed becomes a number: flags of all programs, cells of
// tables, launcher variables. NaN, infinity, hexadecimal digits, a plus sign, spaces, text after
// the number and values that the type cannot hold are no numbers.

/// Doubles have every integer up to here, 2^53.
inline constexpr double kLargestExactInteger = 9007199254740992.0;

/// "3", "-0.5", "15e12".
std::optional<double> parse_number(std::string_view text);
/// Digits, or a number without a fraction up to 2^53: "1e9", "8.0".
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

// Readers of a value in a range, both ends included. Each sets `value` and returns an empty text,
// or leaves it and returns what is wrong: "nan is not a number from 0 to 1".

std::string read_number(std::string_view text, double low, double high, double& value);
std::string read_integer(std::string_view text, std::int64_t low, std::int64_t high,
                         std::int64_t& value);
std::string read_unsigned(std::string_view text, std::uint64_t low, std::uint64_t high,
                          std::uint64_t& value);
/// A number and its unit, "200MB", "1.5 GiB"; B, KB to TB are powers of 1000, KiB to TiB of 1024,
/// in letters of either case. A number alone counts `bare`. Whole numbers are exact to the last
/// byte, fractions of a byte are dropped.
std::string read_size(std::string_view text, Bytes bare, Bytes low, Bytes high, Bytes& value);

}  // namespace shardwise
