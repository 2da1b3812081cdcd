#include "gui/models/memory/memory_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/estimate/estimate.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Plan four_stages() {
  Plan plan = test::small_plan();
  plan.layout.pp = 4;
  plan.layout.dp_shard = 2;
  return plan;
}

TEST(MemoryStacks, SegmentsSumToTheTotalToTheByte) {
  const StepReport report = test::report_of(four_stages());
  for (const MemoryBy by : {MemoryBy::phase, MemoryBy::stage}) {
    for (const MemoryStack& stack : memory_stacks(report, by)) {
      Bytes sum;
      for (const Bytes each : stack.groups) sum += each;
      EXPECT_EQ(sum, stack.total) << stack.label;
    }
  }
}

TEST(MemoryStacks, HighestPhaseIsTheReportedPeak) {
  const StepReport report = test::report_of(four_stages());
  const std::vector<MemoryStack> stacks = memory_stacks(report, MemoryBy::phase);
  ASSERT_EQ(stacks.size(), kMemoryPhases);
  const auto highest = std::ranges::max_element(stacks, {}, &MemoryStack::total);
  EXPECT_EQ(highest->total, report.verdict.point);
  EXPECT_TRUE(highest->worst);
}

TEST(MemoryStacks, ByStageHasEachStageAtItsPeak) {
  const StepReport report = test::report_of(four_stages());
  const std::vector<MemoryStack> stacks = memory_stacks(report, MemoryBy::stage);
  ASSERT_EQ(stacks.size(), 4U);
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    EXPECT_EQ(stacks[s].total, report.stages[s].peak_total());
    EXPECT_EQ(stacks[s].upper, report.stage_upper[s]);
    EXPECT_EQ(stacks[s].worst, static_cast<int>(s) == report.verdict.worst_stage);
  }
}

TEST(MemoryStacks, AxisHasRoomForEveryStackAndTheLimit) {
  const StepReport report = test::report_of(test::plan_that_cannot_fit());
  const std::vector<MemoryStack> stacks = memory_stacks(report, MemoryBy::stage);
  const Bytes top = axis_top(stacks, report.verdict.usable);
  EXPECT_GE(top, stacks.front().upper);
  EXPECT_GE(axis_top({}, 80_GiB), 80_GiB);
}

TEST(PeakGroups, SumToThePointEstimate) {
  const StepReport report = test::report_of(four_stages());
  Bytes sum;
  for (const Bytes each : peak_groups(report)) sum += each;
  EXPECT_EQ(sum, report.verdict.point);
}

TEST(PeakGroups, NeedNoTimes) {
  const Plan plan = four_stages();
  EXPECT_EQ(peak_groups(plan, plan.layout), peak_groups(test::report_of(plan)));
}

}  // namespace
}  // namespace shardwise::view
