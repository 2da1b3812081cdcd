#include "planner/recorded/recorded_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/recorded/stage_timeline.h"
#include "planner/recorded/step_parts.h"
#include "tests/planner/recorded/hand_made_step.h"

namespace shardwise::test {
namespace {

TimeParts by_clock(const RecordedStep& step) {
  StepFacts facts;
  return step_parts(step, facts);
}

TEST(StepParts, SayWhatWasMovedAndWhatWasWaitedForOthers) {
  const Step step = example();
  const TimeParts parts = by_clock(step.of(30));
  EXPECT_NEAR(ms(parts.forward), 3, 1e-9);
  EXPECT_NEAR(ms(parts.backward), 8, 1e-9);
  EXPECT_NEAR(ms(parts.straggler), 3 + 1, 1e-9);
  EXPECT_NEAR(ms(parts.dp_exposed), 4 + 2 + 1, 1e-9);
  EXPECT_NEAR(ms(parts.optimizer), 2 + 5, 1e-9);
  EXPECT_NEAR(ms(parts.input_exposed), 1, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 30, 1e-9);
}

TEST(StepParts, CountWhatFollowsTheLastKernel) {
  const Step step = Step()
                        .op(OpRole::optimizer, Stream::compute, {0, 0, 0, 5}, {})
                        .op(OpRole::gather_updated, Stream::all_gather, {4, 4, 7, 9}, {});
  const TimeParts parts = by_clock(step.of(9));
  EXPECT_NEAR(ms(parts.straggler), 2, 1e-9);
  EXPECT_NEAR(ms(parts.dp_exposed), 2, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 9, 1e-9);
}

// Waiting for a message is the schedule's, waiting for the ranks of a data-parallel group is a
// straggler's; transfers count under the axis of their stream.
TEST(StepParts, FileWaitingByWhoIsWaitedFor) {
  const Step step = Step()
                        .op(OpRole::receive_forward, Stream::receive, {0, 0, 4, 5}, {})
                        .in(GroupKind::pp)
                        .op(OpRole::forward, Stream::compute, {5, 5, 5, 9}, {0})
                        .op(OpRole::reload, Stream::host_copy, {6, 6, 6, 12}, {})
                        .op(OpRole::backward, Stream::compute, {12, 12, 12, 20}, {2})
                        .op(OpRole::gradient_norm, Stream::outer_reduce, {20, 20, 23, 24}, {3})
                        .in(GroupKind::world)
                        .op(OpRole::optimizer, Stream::compute, {24, 24, 24, 25}, {4});
  const TimeParts parts = by_clock(step.of(25));
  EXPECT_NEAR(ms(parts.pp_exposed), 1, 1e-9);
  EXPECT_NEAR(ms(parts.bubble), 4 + 3, 1e-9);  // the world spans stages
  EXPECT_NEAR(ms(parts.offload_exposed), 3, 1e-9);
  EXPECT_NEAR(ms(parts.straggler), 0, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 25, 1e-9);
  std::vector<OperationTime> operations;
  const std::vector<AxisTime> axes = times_by_axis(stage_timeline(step.of(25), operations));
  const auto offload = std::ranges::find(axes, "offload", &AxisTime::axis);
  ASSERT_NE(offload, axes.end());
  EXPECT_NEAR(ms(offload->total), 6, 1e-9);
  EXPECT_NEAR(ms(offload->exposed), 3, 1e-9);
}

// An operation that begins after all it waits for had ended was not issued in time.
TEST(StepParts, CallALateBeginLaunch) {
  const Step step = Step()
                        .op(OpRole::forward, Stream::compute, {1, 1, 1, 4}, {})
                        .op(OpRole::backward, Stream::compute, {6, 6, 6, 9}, {});
  const TimeParts parts = by_clock(step.of(9));
  EXPECT_NEAR(ms(parts.launch), 1 + 2, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 9, 1e-9);
}

// The host waits for the receive before it issues the second pass, which waits for nothing: while
// the message moves, the gap is the message's.
TEST(StepParts, FollowWhatTheHostWaitedFor) {
  const Step step = Step()
                        .op(OpRole::forward, Stream::compute, {0, 0, 0, 3}, {})
                        .op(OpRole::receive_forward, Stream::receive, {3, 3, 3, 7}, {0})
                        .in(GroupKind::pp)
                        .op(OpRole::forward, Stream::compute, {7, 7, 7, 9}, {});
  EXPECT_NEAR(ms(by_clock(step.of(9)).launch), 4, 1e-9);
  const std::vector<std::uint32_t> issued_after = {kNoOperation, kNoOperation, 1};
  RecordedStep known = step.of(9);
  known.issued_after = issued_after;
  EXPECT_NEAR(ms(by_clock(known).launch), 0, 1e-9);
  EXPECT_NEAR(ms(by_clock(known).pp_exposed), 4, 1e-9);
}

TEST(BusiestOf, IsTheFirstOfThoseThatComputeLongest) {
  std::vector<StageTimeline> stages(4);
  for (const std::size_t s : {1U, 2U}) stages[s].computing = Seconds(3);
  stages[3].computing = Seconds(2);
  EXPECT_EQ(busiest_of(stages), 1U);
  EXPECT_EQ(busiest_of(std::span(stages).first(1)), 0U);
}

TEST(RecordedStep, IsExposedFromWhenTheLastOfTheGroupWasReady) {
  const Step step = example();
  const std::vector<double> expected = {4, 2, 0, 0, 1, 0};
  const std::vector<double> found = exposed_times(step.of(30));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t op = 0; op < expected.size(); ++op) {
    EXPECT_NEAR(found[op] * 1e3, expected[op], 1e-9) << op;
  }
}

// Waiting is no work, and the squares are the optimizer's: 3 + 8 + 5 ms of kernels and 2 of
// squares. The two gathers move 4 and 3 ms, the norm 1, of which one gather has 1 ms beside the
// forward pass.
TEST(RecordedStep, IsATimelineOfWhatRan) {
  const Step step = example();
  std::vector<OperationTime> operations;
  const StageTimeline stage = stage_timeline(step.of(30), operations);
  EXPECT_NEAR(ms(stage.computing), 18, 1e-9);
  EXPECT_NEAR(ms(stage.idle), 12, 1e-9);
  const std::vector<AxisTime> axes = times_by_axis(stage);
  ASSERT_EQ(axes.size(), 1U);
  EXPECT_EQ(axes.front().axis, "dp");
  EXPECT_NEAR(ms(axes.front().total), 8, 1e-9);
  EXPECT_NEAR(ms(axes.front().exposed), 7, 1e-9);
  EXPECT_NEAR(overlap_of(std::span(&stage, 1)), 1.0 / 8, 1e-9);
  const auto optimizer = std::ranges::find(operations, "optimizer", &OperationTime::name);
  ASSERT_NE(optimizer, operations.end());
  EXPECT_NEAR(ms(optimizer->time), 7, 1e-9);
}

}  // namespace
}  // namespace shardwise::test
