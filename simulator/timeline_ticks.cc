#include "simulator/timeline_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace shardwise::sim {
namespace {

struct Unit {
  double size = 1;
  std::string_view name;
};

constexpr double kRounding = 1e-9;

/// 1, 2 or 5 times a power of ten, in some unit.
struct Step {
  int mantissa = 1;
  int exponent = 0;
  double times(std::int64_t i) const {
    // A power of ten above 1 and its inverse are exact to the last digit that is printed.
    const double ten = std::pow(10, std::abs(exponent));
    const auto n = static_cast<double>(i * mantissa);
    return exponent < 0 ? n / ten : n * ten;
  }
  Tick tick(std::int64_t i, const Unit& unit) const {
    if (i == 0) return {0, "0"};
    return {times(i) * unit.size,
            fmt::format("{:.{}f} {}", times(i), std::max(0, -exponent), unit.name)};
  }
};

/// The largest step that divides `length` into at least `least` parts. \pre length > 0
Step round_step(double length, double least) {
  for (int exponent = static_cast<int>(std::floor(std::log10(length)));; --exponent) {
    for (const int mantissa : {5, 2, 1}) {
      const Step step = {mantissa, exponent};
      if (length >= least * step.times(1)) return step;
    }
  }
}

std::vector<Tick> ticks(double most, const Unit& unit, double least) {
  std::vector<Tick> made = {{0, "0"}};
  if (!(most > 0)) return made;
  const double length = most / unit.size * (1 + kRounding);
  const Step step = round_step(length, least);
  for (std::int64_t i = 1; step.times(i) <= length; ++i) made.push_back(step.tick(i, unit));
  return made;
}

// Units change where those of format_seconds do.
Unit unit_of_time(double s) {
  return s < 0.9995e-3   ? Unit{1e-6, "us"}
         : s < 0.9995    ? Unit{1e-3, "ms"}
         : s < 600       ? Unit{1, "s"}
         : s < 2 * 3600  ? Unit{60, "min"}
         : s < 48 * 3600 ? Unit{3600, "h"}
                         : Unit{86400, "days"};
}

}  // namespace

std::vector<Tick> time_ticks(Seconds length) {
  return ticks(length.value(), unit_of_time(length.value()), 5);
}

std::vector<Tick> time_ticks_between(Seconds from, Seconds to, Seconds drawn, Seconds length) {
  const Unit unit = unit_of_time(length.value());
  const Step step = round_step(drawn.value() / unit.size * (1 + kRounding), 5);
  std::vector<Tick> made;
  const double first = std::ceil(from.value() / unit.size / step.times(1) * (1 - kRounding));
  for (auto i = static_cast<std::int64_t>(first);; ++i) {
    Tick tick = step.tick(i, unit);
    if (tick.value > to.value()) return made;
    made.push_back(std::move(tick));
  }
}

std::vector<Tick> memory_ticks(Bytes most) {
  const auto bytes = static_cast<double>(most.value());
  const Unit unit = bytes < 0x1p20   ? Unit{0x1p10, "KiB"}
                    : bytes < 0x1p30 ? Unit{0x1p20, "MiB"}
                                     : Unit{0x1p30, "GiB"};
  return ticks(bytes, unit, 2);
}

}  // namespace shardwise::sim
