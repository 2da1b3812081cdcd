#include "executor/kernels/element.h"

#include <gtest/gtest.h>

#include <limits>

namespace shardwise::exec {
namespace {

TEST(Bf16, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(to_float(from_float<Bf16>(1.0F)), 1.0F);
  EXPECT_EQ(to_float(from_float<Bf16>(1.0F + 0x1p-8F)), 1.0F);  // half way: to the even one
  EXPECT_EQ(to_float(from_float<Bf16>(1.0F + 0x3p-8F)), 1.0F + 0x1p-6F);
  EXPECT_EQ(to_float(from_float<Bf16>(1.0F + 0x1.02p-8F)), 1.0F + 0x1p-7F);
  EXPECT_EQ(to_float(from_float<Bf16>(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(to_float(from_float<Bf16>(std::nanf("1")))));
}

TEST(ExpOf, IsWithinTwoUnitsOfTheMathLibraryOnItsRange) {
  for (int i = -87'000; i <= 88'000; ++i) {
    const float x = static_cast<float>(i) / 1000.0F;
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(exp_of(x)), exact, 2.5e-7 * exact) << x;
  }
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  EXPECT_EQ(exp_of(-std::numeric_limits<float>::infinity()), 0.0F);
}

TEST(LaneSum, AddsEveryTermOnce) {
  for (std::int64_t count = 0; count < 70; ++count) {
    const float sum = lane_sum(count, [](std::int64_t i) { return static_cast<float>(i); });
    const std::int64_t all = count * (count - 1) / 2;
    EXPECT_EQ(sum, static_cast<float>(all));
  }
}

}  // namespace
}  // namespace shardwise::exec
