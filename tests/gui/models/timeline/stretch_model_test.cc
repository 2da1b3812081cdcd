#include "gui/models/timeline/stretch_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gui/models/commands/commands.h"
#include "gui/models/session/session.h"
#include "gui/models/timeline/readout.h"
#include "planner/spec/text/format.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

TEST(ReadScale, KnowsKindsAxesAndTheClustersTiers) {
  const Plan plan = test::small_plan();
  EXPECT_EQ(std::get<sim::Paint>(read_scale(plan, "backward", 0.5)->what), sim::Paint::backward);
  EXPECT_EQ(std::get<TrafficAxis>(read_scale(plan, "dp", 0.5)->what), TrafficAxis::dp);
  for (std::size_t t = 0; t < plan.cluster.tiers.size(); ++t) {
    const auto scale = read_scale(plan, plan.cluster.tiers[t].name, 0.5);
    ASSERT_TRUE(scale);
    EXPECT_EQ(std::get<sim::TierNumber>(scale->what).tier, t);
  }
  EXPECT_FALSE(read_scale(plan, "none", 0.5));
  EXPECT_FALSE(read_scale(plan, "sideways", 0.5));
}

class StretchedSession : public testing::Test {
 protected:
  StretchedSession() { session_.settle(); }
  std::string run(const std::string& line) { return run_command(session_, line); }
  const AppState& state() const { return session_.state(); }
  Session session_{test::small_plan()};
};

TEST_F(StretchedSession, ShowsTheStepSimulatedAgainAndWhatItIsWorth) {
  EXPECT_EQ(run("timeline.stretch backward 0.5"), "");
  EXPECT_EQ(state().shown_step(), state().lanes.get());
  session_.settle();
  const StepLanes alone = step_lanes(state().plan, {0, {{sim::Paint::backward, 0.5}}});
  ASSERT_NE(state().shown_step(), state().lanes.get());
  EXPECT_EQ(state().shown_step()->length, alone.length);
  const StretchWorth worth = worth_of(*state().timeline.stretch, *state().lanes->report);
  EXPECT_EQ(worth.before, state().lanes->report->step_time);
  EXPECT_EQ(worth.after, alone.report->step_time);
  EXPECT_LT(worth.change, 0);
  EXPECT_NEAR(worth.dollars,
              alone.report->dollars_per_1e9_tokens - state().lanes->report->dollars_per_1e9_tokens,
              1e-9);
  EXPECT_NE(worth.text.find(format_seconds(worth.after)), std::string::npos) << worth.text;
  EXPECT_NE(worth.text.find("$"), std::string::npos) << worth.text;
}

TEST_F(StretchedSession, GoesBackOnEscapeAndWhenThePlanChanges) {
  run("timeline.stretch forward 0.5");
  session_.settle();
  run("app.close");
  EXPECT_EQ(state().shown_step(), state().lanes.get());
  run("timeline.stretch forward 0.5");
  session_.settle();
  run("question.set micro_batch_size 2");
  session_.settle();
  EXPECT_FALSE(state().timeline.stretch);
}

TEST_F(StretchedSession, EndsOnTheLastOfManyStretches) {
  session_.worker().hold();
  for (int i = 1; i <= 50; ++i) run("timeline.stretch backward " + std::to_string(i / 50.0 + 0.5));
  session_.worker().release();
  session_.settle();
  EXPECT_EQ(state().timeline.stretch->factor, 1.5);
  const StepLanes alone = step_lanes(state().plan, {0, {{sim::Paint::backward, 1.5}}});
  EXPECT_EQ(state().shown_step()->length, alone.length);
}

TEST_F(StretchedSession, SaysWhatCanBeStretched) {
  EXPECT_NE(run("timeline.stretch sideways 0.5").find("forward, backward"), std::string::npos);
  EXPECT_NE(run("timeline.stretch forward"), "");
  EXPECT_NE(run("timeline.stretch forward 0"), "");
  EXPECT_FALSE(state().timeline.stretch);
}

TEST_F(StretchedSession, ReadsOutTheWholeStepAsTheLanesAndTheReportHaveIt) {
  const StepLanes& step = *state().lanes;
  const Readout whole = read_out(step, {0, step.length});
  double exposed = 0;
  for (const StageTimeline& stage : step.report->timeline->stages) {
    for (const StreamTime& stream : stage.streams) exposed += stream.exposed.value();
  }
  EXPECT_NEAR(whole.exposed, exposed, 1e-9);
  int moving = 0;
  for (const LaneReadout& each : whole.lanes) {
    const Lane& lane = *step.find(each.lane);
    EXPECT_NEAR(each.busy, lane.busy, 1e-9);
    if (lane.moved.empty() || lane.moved.back() == 0) continue;
    ++moving;
    EXPECT_NEAR(each.bytes, lane.moved.back(), 1);
    EXPECT_NEAR(each.bus.value(), lane.on_bus.back() / lane.busy, 1);
  }
  EXPECT_GT(moving, 0);
  // Two halves are the whole.
  const Readout first = read_out(step, {0, step.length / 3});
  const Readout second = read_out(step, {step.length / 3, step.length});
  double bytes = 0;
  double all = 0;
  for (const LaneReadout& each : first.lanes) bytes += each.bytes;
  for (const LaneReadout& each : second.lanes) bytes += each.bytes;
  for (const LaneReadout& each : whole.lanes) all += each.bytes;
  EXPECT_NEAR(bytes, all, 1e-6 * all);
}

TEST_F(StretchedSession, WalksAlongALaneAndToWhatASpanWaitedFor) {
  EXPECT_NE(run("timeline.next"), "");
  const double first = state().lanes->lanes.front().spans.start.front();
  EXPECT_EQ(run(fmt::format("timeline.select 0.compute {}", first)), "");
  ASSERT_TRUE(state().timeline.chosen);
  run("timeline.next");
  EXPECT_EQ(state().timeline.chosen->span, 1U);
  ASSERT_FALSE(state().timeline.waited.empty());
  const ChosenSpan cause = state().timeline.waited.front();
  run("timeline.cause");
  EXPECT_EQ(*state().timeline.chosen, cause);
  run("timeline.previous");
  EXPECT_EQ(state().timeline.chosen->span, 0U);
  EXPECT_NE(run("timeline.select 9.compute 0"), "");
  EXPECT_NE(run("timeline.select compute"), "");
}

TEST_F(StretchedSession, FocusesOnTheChosenSpanAndThenOnTheStep) {
  run("timeline.select 0.compute 0.001");
  ASSERT_TRUE(state().timeline.chosen);
  run("timeline.fit");
  const Lane& lane = *state().lanes->find(state().timeline.chosen->lane);
  EXPECT_EQ(state().range, focused(lane, state().timeline.chosen->span, state().lanes->length));
  run("timeline.fit");
  EXPECT_EQ(state().range, (TimeRange{0, state().lanes->length}));
}

TEST_F(StretchedSession, ShowsTheSpanThatIsExposedLongest) {
  EXPECT_EQ(run("timeline.worst"), "");
  ASSERT_TRUE(state().timeline.measured);
  ASSERT_TRUE(state().timeline.chosen);
  const ChosenSpan worst = *state().timeline.chosen;
  EXPECT_EQ(worst, state().lanes->worst->span);
  const double most = state().lanes->find(worst.lane)->exposed_in(worst.span, worst.span + 1);
  for (const Lane& lane : state().lanes->lanes) {
    for (std::size_t i = 0; i < lane.spans.size(); ++i) {
      EXPECT_LE(lane.exposed_in(i, i + 1), most);
    }
  }
  EXPECT_NEAR(state().range.length(), 3 * state().timeline.measured->length(), 1e-9);
}

TEST_F(StretchedSession, MarksPinsGroupsAndColours) {
  run("timeline.mark 0.5");
  run("timeline.mark 0.25");
  EXPECT_EQ(state().timeline.marks, (std::vector<double>{0.25, 0.5}));
  run("timeline.unmark");
  EXPECT_TRUE(state().timeline.marks.empty());
  run("timeline.pin 0.compute");
  EXPECT_EQ(state().timeline.pinned.size(), 1U);
  run("timeline.pin 0.compute");
  EXPECT_TRUE(state().timeline.pinned.empty());
  run("timeline.colour axis");
  EXPECT_EQ(state().timeline.colour, ColourBy::axis);
  EXPECT_NE(run("timeline.colour mauve"), "");
  run("timeline.measure 0.2 0.1");
  EXPECT_EQ(*state().timeline.measured, (TimeRange{0.1, 0.2}));
  EXPECT_NE(run("timeline.measure x 0.1"), "");
  EXPECT_NE(run("timeline.rank 100000"), "");
  EXPECT_EQ(run("timeline.rank 3"), "");
  session_.settle();
  EXPECT_EQ(state().lanes->ranks, std::vector<std::int64_t>{3});
}

}  // namespace
}  // namespace shardwise::view
