#include "gui/models/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gui/models/explore/explored_rows.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

const Slider& slider(const Session& session, const std::string& id) {
  for (const SliderSection& section : session.state().sliders) {
    for (const Slider& each : section.sliders) {
      if (each.id == id) return each;
    }
  }
  throw std::out_of_range(id);
}

StepReport fresh(const Plan& plan) {
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

TEST(Session, ShowsNumbersOfTheDraggedLayoutBeforeTheWorkerHasDoneAnything) {
  Session session(test::small_plan());
  session.settle();
  session.worker().hold();
  const std::size_t last = slider(session, "tp").steps.size() - 1;
  session.slide("tp", last);
  const AppState& state = session.state();
  EXPECT_EQ(state.plan.layout.tp, slider(session, "tp").steps.back());
  EXPECT_EQ(state.report.verdict.point, fresh(state.plan).verdict.point);
  EXPECT_TRUE(state.current());
  ASSERT_LT(state.selected, state.answer.rows.size());
  EXPECT_EQ(state.answer.rows[state.selected].layout, state.plan.layout);
}

TEST(Session, FiftyDragsOfTheQuestionEndOnTheLastOnesAnswer) {
  Session session(test::small_plan());
  session.settle();
  session.worker().hold();
  const std::size_t steps = slider(session, "sequence_length").steps.size();
  for (std::size_t drag = 0; drag < 50; ++drag) {
    session.slide("sequence_length", drag % steps);
    session.collect();
    EXPECT_TRUE(check_plan(session.state().plan).empty());
    EXPECT_TRUE(drag == 0 || !session.state().current());
  }
  session.worker().release();
  session.settle();
  const AppState& state = session.state();
  EXPECT_TRUE(state.current());
  const Answer alone = explored_rows(state.plan, fresh(state.plan));
  EXPECT_TRUE(state.answer.exact);
  for (std::size_t i = 0; i < alone.rows.size(); ++i) {
    EXPECT_EQ(state.answer.rows[i].layout, alone.rows[i].layout);
    EXPECT_EQ(state.answer.rows[i].memory, alone.rows[i].memory);
    EXPECT_EQ(state.answer.rows[i].time.value(), alone.rows[i].time.value());
  }
}

TEST(Session, NeverShowsAnOlderAnswerAsCurrent) {
  Session session(test::small_plan());
  session.settle();
  session.slide("sequence_length", 0);
  session.worker().finish();  // its rows wait to be collected
  session.worker().hold();
  session.slide("sequence_length", 1);
  session.collect();
  EXPECT_FALSE(session.state().current());
  session.worker().release();
  session.settle();
  EXPECT_TRUE(session.state().current());
}

TEST(Session, HoldingMemoryBackChangesVerdictsAndNoPrice) {
  Session session(test::small_plan());
  session.settle();
  const std::vector<LayoutRow> before = session.state().answer.rows;
  session.worker().hold();
  session.slide("held_back", slider(session, "held_back").steps.size() - 1);
  const AppState& state = session.state();
  EXPECT_LT(state.answer.usable, before.front().memory + 80_GiB);
  ASSERT_EQ(state.answer.rows.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const LayoutRow& row = state.answer.rows[i];
    EXPECT_EQ(row.memory, before[i].memory);
    EXPECT_EQ(row.time.value(), before[i].time.value());
    EXPECT_EQ(row.fit, fit_of(row.peaks(), state.answer.usable));
  }
}

TEST(Session, UndoAndRedoWalkTheQuestionsBackAndForth) {
  Session session(test::small_plan());
  session.settle();
  std::vector<std::string> plans = {to_json(session.state().plan)};
  session.slide("tp", 1);
  plans.push_back(to_json(session.state().plan));
  session.slide("sequence_length", 0);
  plans.push_back(to_json(session.state().plan));
  EXPECT_FALSE(session.can_redo());
  for (const std::size_t at : {1U, 0U}) {
    ASSERT_TRUE(session.can_undo());
    session.undo();
    EXPECT_EQ(to_json(session.state().plan), plans[at]);
  }
  EXPECT_FALSE(session.can_undo());
  session.undo();
  for (const std::size_t at : {1U, 2U}) {
    session.redo();
    EXPECT_EQ(to_json(session.state().plan), plans[at]);
  }
  session.undo();
  session.slide("tp", 0);
  EXPECT_FALSE(session.can_redo());
}

TEST(Session, WhatADragPassesOnItsWayLeavesNoTraces) {
  Plan plan = test::small_plan();
  plan.layout.dp_shard = 1;
  plan.layout.dp_replicate = 8;
  Session session(plan);
  session.hold_pointer(true);
  for (const char* const tp : {"2", "4", "8", "4", "2"}) {
    EXPECT_EQ(session.type_field("tp", tp), "");
  }
  session.hold_pointer(false);
  EXPECT_EQ(session.state().plan.layout.tp, 2);
  EXPECT_EQ(session.state().plan.layout.dp_shard, 1);
  EXPECT_EQ(session.state().plan.layout.dp_replicate, 4);
  session.undo();
  EXPECT_EQ(session.state().plan.layout, plan.layout);
}

TEST(Session, BarsOfRowsAreTheirPeaksByGroup) {
  Session session(test::small_plan());
  session.settle();
  const std::vector<std::uint32_t> rows(
      session.state().shown.begin(),
      session.state().shown.begin() +
          std::min<std::ptrdiff_t>(5, std::ssize(session.state().shown)));
  session.want_bars(rows);
  session.settle();
  for (const std::uint32_t row : rows) {
    ASSERT_TRUE(session.state().bars[row]);
    Bytes sum;
    for (const Bytes each : *session.state().bars[row]) sum += each;
    EXPECT_EQ(sum, session.state().answer.rows[row].memory);
  }
}

TEST(Session, HasAStateForALayoutOfOneGpuAndForNothingThatFits) {
  Session one(test::small_plan(1));
  one.settle();
  EXPECT_FALSE(one.state().answer.rows.empty());
  Session none(test::plan_that_cannot_fit());
  none.settle();
  EXPECT_TRUE(none.state().current());
  EXPECT_EQ(none.state().answer.counts.fit, 0);
  EXPECT_FALSE(none.state().answer.rows.empty());
}

}  // namespace
}  // namespace shardwise::view
