#include "planner/spec/report/interval_words.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

ErrorInterval between(double low, double high) { return {low, high, 40, 5, "", ""}; }

TEST(IntervalWords, HaveOneUnitWhereBothEndsHaveIt) {
  EXPECT_EQ(time_with_interval(Seconds(57), between(0.96, 1.2)), "57.0 s (90 %: 54.7 to 68.4 s)");
  EXPECT_EQ(interval_words(Seconds(0.9), between(0.9, 1.2)), "90 %: 810 ms to 1.08 s");
  EXPECT_EQ(interval_words(10_GiB, between(0.9, 1.1)), "90 %: 9.00 to 11.0 GiB");
}

TEST(IntervalWords, SayNothingOfAnIntervalThatIsNotKnown) {
  EXPECT_EQ(time_with_interval(Seconds(57), {}), "57.0 s");
  EXPECT_EQ(interval_words(10_GiB, {}), "");
  EXPECT_EQ(intervals_line(StepReport(), {}), "");
  EXPECT_EQ(calibrated_on({}), "");
}

TEST(IntervalsLine, NamesStepAllocatedAndNvidiaSmi) {
  StepReport report;
  report.step_time = Seconds(57);
  StageMemory stage;
  stage[MemoryPhase::steady_forward_backward].bytes[0] = (40_GiB).value();
  report.stages = {stage};
  EXPECT_EQ(intervals_line(report, {between(0.96, 1.2), between(0.9, 1.1), {}, between(0.9, 1.25)}),
            "90 %: step 54.7 to 68.4 s; allocated 36.0 to 44.0, nvidia-smi 36.0 to 50.0 GiB");
  EXPECT_EQ(intervals_line(report, {between(0.96, 1.2), {}, {}, {}}), "90 %: step 54.7 to 68.4 s");
}

}  // namespace
}  // namespace shardwise
