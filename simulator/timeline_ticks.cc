#include "simulator/timeline_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace shardwise::sim {
namespace {

struct Unit {
  double size = 1;
  std::string_view name;
};

/// The largest round step that divides `most` into at least `least` parts.
std::vector<Tick> ticks(double most, const Unit& unit, double least) {
  std::vector<Tick> made = {{0, "0"}};
  if (!(most > 0)) return made;
  constexpr double kRounding = 1e-9;
  const double length = most / unit.size * (1 + kRounding);
  for (int exponent = static_cast<int>(std::floor(std::log10(length)));; --exponent) {
    for (const int mantissa : {5, 2, 1}) {
      // A power of ten above 1 and its inverse are exact to the last digit that is printed.
      const double ten = std::pow(10, std::abs(exponent));
      const auto at = [&](int i) { return exponent < 0 ? i * mantissa / ten : i * mantissa * ten; };
      if (length < least * at(1)) continue;
      for (int i = 1; at(i) <= length; ++i) {
        made.push_back({at(i) * unit.size,
                        fmt::format("{:.{}f} {}", at(i), std::max(0, -exponent), unit.name)});
      }
      return made;
    }
  }
}

}  // namespace

std::vector<Tick> time_ticks(Seconds length) {
  const double s = length.value();
  // Units change where those of format_seconds do.
  const Unit unit = s < 0.9995e-3   ? Unit{1e-6, "us"}
                    : s < 0.9995    ? Unit{1e-3, "ms"}
                    : s < 600       ? Unit{1, "s"}
                    : s < 2 * 3600  ? Unit{60, "min"}
                    : s < 48 * 3600 ? Unit{3600, "h"}
                                    : Unit{86400, "days"};
  return ticks(s, unit, 5);
}

std::vector<Tick> memory_ticks(Bytes most) {
  const auto bytes = static_cast<double>(most.value());
  const Unit unit = bytes < 0x1p20   ? Unit{0x1p10, "KiB"}
                    : bytes < 0x1p30 ? Unit{0x1p20, "MiB"}
                                     : Unit{0x1p30, "GiB"};
  return ticks(bytes, unit, 2);
}

}  // namespace shardwise::sim
