#include "planner/spec/text/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "planner/spec/text/memory_unit.h"

namespace shardwise {
namespace {

/// Decimals that leave three significant digits of a number below 1000.
int decimals(double magnitude) {
  if (magnitude >= 99.95) return 0;
  if (magnitude >= 9.995) return 1;
  return 2;
}

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, decimals(std::abs(value)));
}

/// `value` in the largest of `units` (each `step` times the one before) that leaves it at least 1.
/// Goes to the next unit already where rounding would print `step` itself.
template <std::size_t kCount>
std::string scaled(double value, double step, const std::array<std::string_view, kCount>& units) {
  std::size_t unit = 0;
  while (unit + 1 < kCount && std::abs(value) >= step - 0.5) {
    value /= step;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  const MemoryUnit unit = memory_unit(bytes);
  if (unit.bytes == 1) return fmt::format("{} B", bytes.value());
  return fmt::format("{} {}", three_digits(static_cast<double>(bytes.value()) / unit.bytes),
                     unit.name);
}

std::string format_gib(Bytes bytes) {
  return MemoryUnit{static_cast<double>(1 << 30), "GiB"}.number(bytes);
}

std::string format_seconds(Seconds time) {
  const double s = time.value();
  const double magnitude = std::abs(s);
  if (magnitude < 0.005e-6) return "0 s";  // two digits show nothing of it
  if (magnitude < 0.9995e-3) return three_digits(s * 1e6) + " us";
  if (magnitude < 0.9995) return three_digits(s * 1e3) + " ms";
  if (magnitude < 600) return three_digits(s) + " s";
  if (magnitude < 2 * 3600) return three_digits(s / 60) + " min";
  if (magnitude < 48 * 3600) return three_digits(s / 3600) + " h";
  return three_digits(s / 86400) + " days";
}

std::string format_bandwidth(BytesPerSecond rate) {
  return three_digits(rate.value() / 1e9) + " GB/s";
}

std::string format_flops_rate(FlopsPerSecond rate) {
  constexpr std::array<std::string_view, 5> kUnits = {"MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s",
                                                      "EFLOP/s"};
  // A GPU is always compared in TFLOP/s.
  if (rate.value() >= 1e11 && rate.value() < 1e16) {
    return three_digits(rate.value() / 1e12) + " TFLOP/s";
  }
  return scaled(rate.value() / 1e6, 1000.0, kUnits);
}

std::string format_flops(Flops work) {
  constexpr std::array<std::string_view, 7> kUnits = {"MFLOP", "GFLOP", "TFLOP", "PFLOP",
                                                      "EFLOP", "ZFLOP", "YFLOP"};
  return scaled(work.value() / 1e6, 1000.0, kUnits);
}

std::string format_count(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_scaled(double count) {
  constexpr std::array<std::string_view, 3> kUnits = {"M", "B", "T"};
  if (std::abs(count) < 999'500) return format_count(std::llround(count));
  return scaled(count / 1e6, 1000.0, kUnits);
}

std::string format_percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string format_dollars(double dollars) {
  if (std::abs(dollars) >= 999.5) return "$" + format_count(std::llround(dollars));
  return fmt::format("${:.2f}", dollars);
}

}  // namespace shardwise
