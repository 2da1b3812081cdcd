#include "planner/search/advice/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>

namespace shardwise {
namespace {

// Young's optimum is sqrt(2 c M); Daly's adds terms that vanish when failures are rare.
TEST(Goodput, IntervalIsYoungsWhenFailuresAreRare) {
  const FailureModel rare{Seconds(1e9), Seconds(10), Seconds(600)};
  const double young = std::sqrt(2 * 10.0 * 1e9);
  EXPECT_NEAR(best_goodput(rare).interval.value() / young, 1, 1e-4);
}

// Daly, equation 37, by hand: c = 300 s, M = 6 h = 21,600 s. c / 2M = 0.00694444, its root
// 0.0833333; sqrt(2 c M) = 3,600; 3,600 (1 + 0.0277778 + 0.000771605) - 300 = 3,402.78.
TEST(Goodput, IntervalIsDalysByHand) {
  const FailureModel failures{Seconds(21600), Seconds(300), Seconds(600)};
  EXPECT_NEAR(best_goodput(failures).interval.value(), 3402.78, 0.01);
}

TEST(Goodput, NoIntervalNearbyIsBetter) {
  for (const double hours : {0.5, 3.0, 50.0}) {
    for (const double checkpoint : {5.0, 60.0, 400.0}) {
      const FailureModel failures{Seconds(hours * 3600), Seconds(checkpoint), Seconds(300)};
      const Goodput best = best_goodput(failures);
      for (const double factor : {0.7, 0.9, 1.1, 1.4}) {
        EXPECT_GE(best.share, goodput_at(failures, best.interval * factor).share - 2e-3)
            << hours << " h, " << checkpoint << " s, x" << factor;
      }
    }
  }
}

TEST(Goodput, SharesAddUpAndFallWithFailures) {
  double before = 1;
  for (const double hours : {1000.0, 100.0, 10.0, 1.0}) {
    const Goodput g = best_goodput({Seconds(hours * 3600), Seconds(60), Seconds(600)});
    EXPECT_NEAR(g.share + g.lost + g.saving, 1, 1e-12);
    EXPECT_LT(g.share, before);
    EXPECT_GT(g.share, 0);
    before = g.share;
  }
}

TEST(Goodput, CheckpointsLongerThanFailuresAreTakenOnceAFailure) {
  const FailureModel hopeless{Seconds(100), Seconds(300), Seconds(10)};
  EXPECT_EQ(best_goodput(hopeless).interval, Seconds(100));
}

}  // namespace
}  // namespace shardwise
