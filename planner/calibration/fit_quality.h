#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// True for the half of all points that a fit does not see and is judged on. Depends on the shape
/// alone, so every fit of the same points leaves out the same ones.
bool left_out(std::initializer_list<std::int64_t> shape);

/// |predicted - measured| / measured.
struct ErrorSummary {
  double median = 0;
  double p95 = 0;  // 95th percentile
};
ErrorSummary summarise(std::vector<double> errors);

/// Record beside the coefficients, with errors rounded to 0.01 %.
FitRecord fit_record(const std::string& fitted_on, const std::string& method, std::size_t points,
                     std::vector<double> left_out_errors);

/// `value` with four significant digits: no measurement here supports more.
double rounded_coefficient(double value);

}  // namespace shardwise
