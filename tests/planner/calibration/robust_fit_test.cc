#include "planner/calibration/robust_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace shardwise {
namespace {

// min(a + b x, c + d x), the shape that algorithms and protocols give.
double lower_of_two_lines(const std::vector<double>& p, double x) {
  return std::min(p[0] + p[1] * x, p[2] + p[3] * x);
}

FitProblem two_lines(const std::vector<double>& x, const std::vector<double>& y) {
  FitProblem problem;
  problem.start = {1, 1, 10, 0.1};
  problem.low = {1e-3, 1e-6, 1e-3, 1e-6};
  problem.high = {1e3, 1e3, 1e3, 1e3};
  problem.points = x.size();
  problem.residuals = [x, y](const std::vector<double>& p, std::vector<double>& residuals) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      residuals[i] = std::log(lower_of_two_lines(p, x[i]) / y[i]);
    }
  };
  return problem;
}

TEST(RobustFit, FindsTheLinesInSpiteOfSpoiltPoints) {
  const std::vector<double> truth = {3, 0.5, 40, 0.02};
  std::vector<double> x;
  std::vector<double> y;
  for (double at = 0.1; at < 1e5; at *= 1.2) {
    x.push_back(at);
    y.push_back(lower_of_two_lines(truth, at));
  }
  y[5] *= 4;
  y[30] *= 3;
  const std::vector<double> found = robust_fit(two_lines(x, y));
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(found[i], truth[i], 0.03 * truth[i]);
}

TEST(RobustFit, GivesTheSameEveryTime) {
  std::vector<double> x = {1, 10, 100, 1000, 10000};
  std::vector<double> y = {3, 7, 20, 70, 500};
  EXPECT_EQ(robust_fit(two_lines(x, y)), robust_fit(two_lines(x, y)));
}

TEST(RobustFit, LeavesWhatNoPointSpeaksOfNearItsStart) {
  // One line explains everything; of the other only that it is above is known.
  const std::vector<double> found = robust_fit(two_lines({1, 2, 4, 8}, {1.5, 2, 3, 5}));
  EXPECT_NEAR(found[0], 1, 0.05);
  EXPECT_NEAR(found[1], 0.5, 0.02);
  EXPECT_NEAR(found[2], 10, 1);
}

TEST(RobustFit, StaysWithinItsLimits) {
  FitProblem problem = two_lines({1, 2, 4, 8}, {100, 200, 400, 800});
  problem.high = {5, 5, 5, 5};
  problem.start = {1, 1, 1, 1};
  for (const double each : robust_fit(problem)) {
    EXPECT_GE(each, 1e-6);
    EXPECT_LE(each, 5 * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace shardwise
