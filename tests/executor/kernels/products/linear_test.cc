#include "executor/kernels/products/linear.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kLinearRows = 6;
constexpr std::int64_t kLinearIn = 4;
constexpr std::int64_t kLinearOut = 5;

/// x W^T + b by definition, for dense x and y.
Doubles reference_linear(const Doubles& x, const Doubles& w, const Doubles& b, bool transposed) {
  Doubles y;
  for (std::int64_t r = 0; r < kLinearRows; ++r) {
    for (std::int64_t o = 0; o < kLinearOut; ++o) {
      double sum = b[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < kLinearIn; ++i) {
        sum += x[static_cast<std::size_t>(r * kLinearIn + i)] *
               w[static_cast<std::size_t>(transposed ? i * kLinearOut + o : o * kLinearIn + i)];
      }
      y.push_back(sum);
    }
  }
  return y;
}

class Linear : public testing::TestWithParam<bool> {
 protected:
  const LinearShape shape_ = {kLinearRows, kLinearIn,  kLinearOut,
                              kLinearIn,   kLinearOut, GetParam()};
  const Floats x_ = random_floats(kLinearRows * kLinearIn, 1);
  const Floats w_ = random_floats(kLinearOut * kLinearIn, 2);
  const Floats b_ = random_floats(kLinearOut, 3);
  const Floats d_y_ = random_floats(kLinearRows * kLinearOut, 4);
  Workers workers_{2};
};

TEST_P(Linear, MultipliesByTheTransposeAndAddsTheBias) {
  Floats y(kLinearRows * kLinearOut);
  linear_forward(shape_, x_.data(), w_.data(), b_.data(), y.data(), false, workers_);
  const Doubles expected = reference_linear(doubles(x_), doubles(w_), doubles(b_), GetParam());
  expect_close(y, expected, kFp32Tolerance, "y");

  Floats stream = random_floats(kLinearRows * kLinearOut, 9);
  Doubles sum = expected;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(stream[i]);
  linear_forward(shape_, x_.data(), w_.data(), b_.data(), stream.data(), true, workers_);
  expect_close(stream, sum, kFp32Tolerance, "stream");
}

TEST_P(Linear, HasTheGradientsOfItsDefinition) {
  const Doubles r = doubles(d_y_);
  const auto f = [&](const Doubles& x, const Doubles& w, const Doubles& b) {
    return dot(reference_linear(x, w, b, GetParam()), r);
  };
  const Doubles x = doubles(x_);
  const Doubles w = doubles(w_);
  const Doubles b = doubles(b_);
  Floats d_x(x_.size());
  Floats d_w(w_.size(), 1.0F);
  Floats d_b(b_.size(), 1.0F);
  linear_backward_input(shape_, d_y_.data(), w_.data(), d_x.data(), false, workers_);
  linear_backward_weight(shape_, x_.data(), d_y_.data(), d_w.data(), d_b.data(), workers_);
  for (float& each : d_w) each -= 1.0F;  // gradients are added to what is there
  for (float& each : d_b) each -= 1.0F;
  expect_close(d_x, numeric_gradient([&](const Doubles& v) { return f(v, w, b); }, x),
               kFp32Tolerance, "d_x");
  expect_close(d_w, numeric_gradient([&](const Doubles& v) { return f(x, v, b); }, w),
               kFp32Tolerance, "d_w");
  expect_close(d_b, numeric_gradient([&](const Doubles& v) { return f(x, w, v); }, b),
               kFp32Tolerance, "d_b");
}

// What bf16 gradients are: the sums of the fp32 ones, rounded once when they join what was there.
TEST_P(Linear, RoundsBf16GradientsOnce) {
  const std::vector<Bf16> x = rounded(x_);
  const std::vector<Bf16> d_y = rounded(d_y_);
  const std::vector<Bf16> before = rounded(random_floats(kLinearOut * kLinearIn, 6));
  Floats d_w(w_.size());
  Floats d_b(b_.size());
  linear_backward_weight(shape_, x.data(), d_y.data(), d_w.data(), d_b.data(), workers_);
  std::vector<Bf16> narrow_w = before;
  std::vector<Bf16> narrow_b(b_.size());
  linear_backward_weight(shape_, x.data(), d_y.data(), narrow_w.data(), narrow_b.data(), workers_);
  for (std::size_t i = 0; i < d_w.size(); ++i) d_w[i] += to_float(before[i]);
  EXPECT_EQ(widened(narrow_w), widened(rounded(d_w)));
  EXPECT_EQ(widened(narrow_b), widened(rounded(d_b)));
}

INSTANTIATE_TEST_SUITE_P(Stored, Linear, testing::Bool(),
                         [](const auto& param) { return param.param ? "InOut" : "OutIn"; });

}  // namespace
}  // namespace shardwise::exec
