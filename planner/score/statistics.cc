#include "planner/score/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "planner/spec/text/check.h"

namespace shardwise {

double quantile(std::vector<double> values, double share) {
  SHARDWISE_CHECK(!values.empty(), "no values");
  SHARDWISE_CHECK(share >= 0, std::to_string(share));
  SHARDWISE_CHECK(share <= 1, std::to_string(share));
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

ErrorStatistics error_statistics(std::span<const double> errors) {
  ErrorStatistics result;
  result.n = errors.size();
  if (errors.empty()) return result;
  std::vector<double> sizes(errors.size());
  std::ranges::transform(errors, sizes.begin(), [](double error) { return std::abs(error); });
  result.median_abs_error = quantile(sizes, 0.5);
  result.p90_abs_error = quantile(std::move(sizes), 0.9);
  result.bias =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  return result;
}

}  // namespace shardwise
