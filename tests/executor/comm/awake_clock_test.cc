#include "executor/comm/awake_clock.h"

#include <gtest/gtest.h>

namespace shardwise::exec {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A moment of a clock that only the test moves.
AwakeTime::Steady at(std::chrono::nanoseconds after) { return AwakeTime::Steady(hours(5) + after); }

// (D17): all processes stopped for 4 s with --timeout 2 were once taken for a hang.
TEST(AwakeTime, DoesNotCountTimeInWhichNobodyLooked) {
  AwakeTime time(at(seconds(0)));
  std::chrono::nanoseconds now{0};
  while (now < seconds(1)) time.look(at(now += milliseconds(100)));
  EXPECT_EQ(time.look(at(seconds(1))), seconds(1));
  // Stopped for an hour, as a paused machine is.
  EXPECT_EQ(time.look(at(seconds(1) + hours(1))), seconds(1) + AwakeTime::kMostGap);
  EXPECT_EQ(time.look(at(seconds(1) + hours(1) + milliseconds(100))),
            seconds(1) + AwakeTime::kMostGap + milliseconds(100));
}

// One rank that hangs leaves the others awake, who look.
TEST(AwakeTime, CountsAllOfAWaitThatLooks) {
  AwakeTime time(at(seconds(0)));
  AwakeTime::Duration awake{0};
  for (int look = 1; look <= 6000; ++look) awake = time.look(at(look * milliseconds(100)));
  EXPECT_EQ(awake, seconds(600));
  awake = time.look(at(seconds(600) + AwakeTime::kMostGap));
  EXPECT_EQ(awake, seconds(600) + AwakeTime::kMostGap);
}

TEST(AwakeTime, CountsSinceAnyMomentWhatWasAwake) {
  AwakeTime time(at(seconds(0)));
  for (int look = 1; look <= 20; ++look) time.look(at(look * milliseconds(100)));
  // Pauses from 2.25 s to 12 s and from 12.25 s to 22 s.
  time.look(at(seconds(12)));
  EXPECT_EQ(time.since(at(seconds(0)), at(seconds(22))), seconds(2) + 2 * AwakeTime::kMostGap);
  EXPECT_EQ(time.since(at(seconds(1)), at(seconds(22))), seconds(1) + 2 * AwakeTime::kMostGap);
  EXPECT_EQ(time.since(at(seconds(5)), at(seconds(22))), AwakeTime::kMostGap);
  EXPECT_EQ(time.since(at(seconds(22)), at(seconds(22))), seconds(0));
  EXPECT_EQ(time.since(at(seconds(30)), at(seconds(22))), seconds(0));
}

// Threads read the clock in any order.
TEST(AwakeTime, NeverGoesBack) {
  AwakeTime time(at(seconds(0)));
  const AwakeTime::Duration later = time.look(at(milliseconds(200)));
  EXPECT_EQ(time.look(at(milliseconds(150))), later);
  EXPECT_EQ(time.look(at(milliseconds(300))), milliseconds(300));
}

}  // namespace
}  // namespace shardwise::exec
