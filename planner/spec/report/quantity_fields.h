#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/text/units.h"

namespace shardwise {

/// Fields of a report with a unit, through the plain numbers that FieldReader and FieldWriter know.

inline constexpr std::int64_t kLargestReportInteger = std::int64_t{1} << 60;
inline constexpr double kMostSeconds = 1e12;
inline constexpr double kLargestReportNumber = 1e36;

/// "step", "s" as "step_s".
inline std::string keyed(std::string_view name, std::string_view unit) {
  return std::string(name) + "_" + std::string(unit);
}

template <class Io, class S>
void seconds(Io& io, std::string_view key, S& time, double least = 0) {
  if constexpr (Io::kReads) {
    double value = time.value();
    io.number(key, value, least, kMostSeconds);
    time = Seconds(value);
  } else {
    io.number(key, time.value(), least, kMostSeconds);
  }
}
/// A difference of two times.
template <class Io, class S>
void difference(Io& io, std::string_view key, S& time) {
  seconds(io, key, time, -kMostSeconds);
}
template <class Io, class B>
void bytes(Io& io, std::string_view key, B& amount) {
  if constexpr (Io::kReads) {
    std::int64_t value = amount.value();
    io.integer(key, value, 0, kLargestReportInteger);
    amount = Bytes(value);
  } else {
    io.integer(key, amount.value(), 0, kLargestReportInteger);
  }
}
/// Values that follow from other fields: written for readers of the file, not read back.
template <class Io>
void derived(Io& io, std::string_view key, Bytes amount) {
  bytes(io, key, amount);
}

}  // namespace shardwise
