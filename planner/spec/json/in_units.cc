#include "planner/spec/json/in_units.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace shardwise {

double in_units(double value, double unit) {
  const double quotient = value / unit;
  for (int digits = 1; digits <= 17; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}g}", quotient, digits).c_str(), nullptr);
    if (rounded * unit == value) return rounded;
  }
  for (const double toward : {-INFINITY, INFINITY}) {
    const double beside = std::nextafter(quotient, toward);
    if (beside * unit == value) return beside;
  }
  return quotient;
}

}  // namespace shardwise
