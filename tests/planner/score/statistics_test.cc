#include "planner/score/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardwise {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({10, 0}, 0.9), 9);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(ErrorStatistics, SeparatesSizeFromBias) {
  const std::vector<double> errors = {-0.2, 0.1, 0.1};
  const ErrorStatistics s = error_statistics(errors);
  EXPECT_EQ(s.n, 3U);
  EXPECT_DOUBLE_EQ(s.median_abs_error, 0.1);
  EXPECT_DOUBLE_EQ(s.p90_abs_error, 0.1 + 0.8 * 0.1);
  EXPECT_NEAR(s.bias, 0, 1e-15);
}

TEST(ErrorStatistics, IsZeroForNothing) {
  const ErrorStatistics s = error_statistics({});
  EXPECT_EQ(s.n, 0U);
  EXPECT_EQ(s.median_abs_error, 0);
}

}  // namespace
}  // namespace shardwise
