#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "executor/kernels/element.h"

namespace shardwise::exec {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

/// Numbers of -1 to 1 that a float holds, the same for the same seed.
inline Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  Floats result(static_cast<std::size_t>(count));
  for (float& x : result) {
    x = static_cast<float>(static_cast<double>(engine()) / 2147483648.0 - 1.0);
  }
  return result;
}

inline Doubles doubles(const Floats& x) { return {x.begin(), x.end()}; }

inline std::vector<Bf16> rounded(const Floats& x) {
  std::vector<Bf16> result;
  for (const float each : x) result.push_back(from_float<Bf16>(each));
  return result;
}
inline Floats widened(const std::vector<Bf16>& x) {
  Floats result;
  for (const Bf16 each : x) result.push_back(to_float(each));
  return result;
}

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The gradient of f at x by central differences. In double they are right to about 1e-9.
inline Doubles numeric_gradient(const std::function<double(const Doubles&)>& f, Doubles x) {
  constexpr double kStep = 1e-5;
  Doubles gradient;
  for (double& each : x) {
    const double at = each;
    each = at + kStep;
    const double above = f(x);
    each = at - kStep;
    const double below = f(x);
    each = at;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

/// Each value within `tolerance` of the largest magnitude that is expected: what sums of fp32
/// numbers of that size lose.
inline void expect_close(const Floats& actual, const Doubles& expected, double tolerance,
                         const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1e-30;
  for (const double each : expected) largest = std::max(largest, std::abs(each));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(actual[i]), expected[i], tolerance * largest)
        << what << " at " << i;
  }
}

inline constexpr double kFp32Tolerance = 4e-6;  // some roundings of 6e-8, and sums of tens of terms
inline constexpr double kBf16Tolerance = 1.2e-2;  // three roundings of 3.9e-3

}  // namespace shardwise::exec
