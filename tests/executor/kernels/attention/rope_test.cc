#include "executor/kernels/attention/rope.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

const RopeShape kRopeShape = {2, 3, 2, 4, 11};
const std::vector<double> kFrequency = {1.0, 0.01};

class Rope : public testing::Test {
 protected:
  void SetUp() override { rope_tables(3, 4, kFrequency.data(), cosines_.data(), sines_.data()); }
  RopeTables tables() const { return {cosines_.data(), sines_.data()}; }

  Floats cosines_ = Floats(6);
  Floats sines_ = Floats(6);
  Workers workers_{2};
};

TEST_F(Rope, TurnsEachPairByItsPositionTimesItsFrequency) {
  const Floats x = random_floats(6 * 11, 1);
  Doubles expected = doubles(x);
  for (std::size_t row = 0; row < 6; ++row) {
    for (const std::size_t head : {0U, 1U}) {
      for (const std::size_t pair : {0U, 1U}) {
        const double angle = static_cast<double>(row % 3) * kFrequency[pair];
        const std::size_t at = row * 11 + head * 4 + pair;
        const double a = expected[at];
        const double b = expected[at + 2];
        expected[at] = a * std::cos(angle) - b * std::sin(angle);
        expected[at + 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  Floats turned = x;
  rope_forward(kRopeShape, tables(), turned.data(), workers_);
  expect_close(turned, expected, kFp32Tolerance, "x");
  rope_backward(kRopeShape, tables(), turned.data(), workers_);  // a rotation's gradient turns back
  expect_close(turned, doubles(x), kFp32Tolerance, "turned back");
}

}  // namespace
}  // namespace shardwise::exec
