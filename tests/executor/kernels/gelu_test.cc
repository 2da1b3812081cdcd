#include "executor/kernels/gelu.h"

#include <gtest/gtest.h>

#include <numbers>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

double reference_gelu(Gelu kind, double x) {
  if (kind == Gelu::erf) return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

class GeluOf : public testing::TestWithParam<Gelu> {};

TEST_P(GeluOf, EqualsItsDefinitionAndHasItsGradient) {
  Workers workers(2);
  Floats x = random_floats(300, 1);
  for (float& each : x) each *= 6;
  const Floats d_y = random_floats(300, 2);
  Doubles y;
  Doubles d_x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = static_cast<double>(x[i]);
    y.push_back(reference_gelu(GetParam(), at));
    const auto f = [](const Doubles& v) { return reference_gelu(GetParam(), v.front()); };
    d_x.push_back(numeric_gradient(f, {at})[0] * static_cast<double>(d_y[i]));
  }
  Floats actual(x.size());
  gelu_forward(GetParam(), 300, x.data(), actual.data(), workers);
  expect_close(actual, y, kFp32Tolerance, "y");
  gelu_backward(GetParam(), 300, x.data(), d_y.data(), x.data(), workers);  // in place
  expect_close(x, d_x, kFp32Tolerance, "d_x");
}

INSTANTIATE_TEST_SUITE_P(Kinds, GeluOf, testing::Values(Gelu::erf, Gelu::tanh));

}  // namespace
}  // namespace shardwise::exec
