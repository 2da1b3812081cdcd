#include "planner/calibration/fit_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shardwise {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double along = at - static_cast<double>(below);
  return sorted[below] + along * (sorted[above] - sorted[below]);
}

}  // namespace

bool left_out(std::initializer_list<std::int64_t> shape) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const std::int64_t each : shape) {
    hash = (hash ^ static_cast<std::uint64_t>(each)) * 0x100000001B3ULL;
    hash ^= hash >> 29;
    hash *= 0xBF58476D1CE4E5B9ULL;
    hash ^= hash >> 32;
  }
  return (hash & 1) != 0;
}

ErrorSummary summarise(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  return {quantile(errors, 0.5), quantile(errors, 0.95)};
}

FitRecord fit_record(const std::string& fitted_on, const std::string& method, std::size_t points,
                     std::vector<double> left_out_errors) {
  const ErrorSummary errors = summarise(std::move(left_out_errors));
  const auto rounded = [](double error) { return std::round(error * 1e4) / 1e4; };
  FitRecord record;
  record.measured = true;
  record.fitted_on = fitted_on;
  record.method = method;
  record.points = static_cast<int>(points);
  record.median_error = rounded(errors.median);
  record.p95_error = rounded(errors.p95);
  return record;
}

double rounded_coefficient(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

}  // namespace shardwise
