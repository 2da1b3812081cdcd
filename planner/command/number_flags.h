#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

#include "planner/spec/text/number.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardwise {

// Flags that take a number, of all programs. Their values go through planner/spec/text/number.h:
// CLI11's own conversions accept hexadecimal digits and infinity, and its ranges let NaN pass. Both
// ends of a range are in it. A value that is refused ends the reading of the command line with one
// line:
// "--jitter: nan is not a number from 0 to 1".

/// A flag whose value `take` takes or explains why not, as the readers of number.h do.
CLI::Option* add_checked(CLI::App& app, const std::string& flag, const std::string& text,
                         std::function<std::string(std::string_view)> take);

CLI::Option* add_number(CLI::App& app, const std::string& flag, double& value, double low,
                        double high, const std::string& text);

template <std::integral T>
CLI::Option* add_integer(CLI::App& app, const std::string& flag, T& value,
                         std::type_identity_t<T> low, std::type_identity_t<T> high,
                         const std::string& text) {
  return add_checked(app, flag, text, [&value, low, high](std::string_view typed) {
    if constexpr (std::unsigned_integral<T>) {
      std::uint64_t number = value;
      std::string problem = read_unsigned(typed, low, high, number);
      value = static_cast<T>(number);
      return problem;
    } else {
      std::int64_t number = value;
      std::string problem = read_integer(typed, low, high, number);
      value = static_cast<T>(number);
      return problem;
    }
  });
}

/// A size with its unit; a number alone counts `bare`.
CLI::Option* add_size(CLI::App& app, const std::string& flag, Bytes& value, Bytes bare, Bytes low,
                      Bytes high, const std::string& text);

}  // namespace shardwise
