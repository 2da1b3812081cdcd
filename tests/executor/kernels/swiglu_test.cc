#include "executor/kernels/swiglu.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kSwigluRows = 3;
constexpr std::int64_t kWidth = 21;

Doubles reference_swiglu(const Doubles& gate_up) {
  Doubles y;
  for (std::size_t row = 0; row < kSwigluRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      const double gate = gate_up[row * 2 * kWidth + i];
      y.push_back(gate / (1 + std::exp(-gate)) * gate_up[(row * 2 + 1) * kWidth + i]);
    }
  }
  return y;
}

TEST(Swiglu, EqualsItsDefinitionAndPutsTheGradientInItsInputsPlace) {
  Workers workers(2);
  Floats x = random_floats(kSwigluRows * 2 * kWidth, 1);
  for (float& each : x) each *= 5;
  const Floats d_y = random_floats(kSwigluRows * kWidth, 2);
  const Doubles at = doubles(x);
  Floats y(d_y.size());
  swiglu_forward(kSwigluRows, kWidth, x.data(), y.data(), workers);
  expect_close(y, reference_swiglu(at), kFp32Tolerance, "y");
  swiglu_backward(kSwigluRows, kWidth, x.data(), d_y.data(), workers);
  expect_close(x,
               numeric_gradient(
                   [&](const Doubles& v) { return dot(reference_swiglu(v), doubles(d_y)); }, at),
               kFp32Tolerance, "d_x");
}

}  // namespace
}  // namespace shardwise::exec
