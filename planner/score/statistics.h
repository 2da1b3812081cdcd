#pragma once

#include <span>
#include <vector>

namespace shardwise {

/// Value below which a `share` of `values` lies, interpolated between neighbours (the definition
/// that NumPy and R call type 7). \pre values is not empty, 0 <= share <= 1
double quantile(std::vector<double> values, double share);

/// How far predictions of one quantity are off. `error` = (predicted - measured) / measured.
struct ErrorStatistics {
  std::size_t n = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double bias = 0;  // mean of the signed errors
};

/// All zero for no errors.
ErrorStatistics error_statistics(std::span<const double> errors);

}  // namespace shardwise
