// Every step time that a session shows is corrected alike by a measured run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gui/models/commands/commands.h"
#include "gui/models/compare/calibration_words.h"
#include "gui/models/session/session.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/clock/simulate.h"
#include "tests/gui/small_plan.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

constexpr double kSlower = 1.5;
constexpr double kNear = 1e-9;

/// Two sessions of the same plan, one of them calibrated by a run that took so much longer.
class Calibrated : public testing::Test {
 protected:
  Calibrated() {
    plain_.settle();
    corrected_.settle();
    StepReport measured = sim::simulate(was().plan).report;
    measured.origin = "measured";
    measured.time.forward += kSlower * was().report.step_time - measured.step_time;
    measured.step_time = measured.time.total();
    const std::string file = scratch_.write_bytes("run.json", report_json(measured));
    EXPECT_EQ(run_command(corrected_, "compare.open " + file), "");
    corrected_.settle();
    EXPECT_EQ(corrected_.take_failure().message, "");
    EXPECT_EQ(run_command(corrected_, "compare.calibrate"), "");
    corrected_.settle();
    EXPECT_TRUE(now().correction);
  }
  /// A command in both.
  void run(const std::string& line) {
    for (Session* each : {&plain_, &corrected_}) {
      EXPECT_EQ(run_command(*each, line), "");
      each->settle();
    }
  }
  const AppState& was() const { return plain_.state(); }
  const AppState& now() const { return corrected_.state(); }

  test::Scratch scratch_;
  Session plain_{test::two_node_plan(), Timing::fitting};
  Session corrected_{test::two_node_plan(), Timing::fitting};
};

void expect_slower(Seconds now, Seconds was, const char* what) {
  EXPECT_NEAR(now.value(), kSlower * was.value(), kNear * was.value()) << what;
}

TEST_F(Calibrated, TheStepAndItsExplanation) {
  expect_slower(now().report.step_time, was().report.step_time, "estimate");
  ASSERT_TRUE(now().simulated && was().simulated);
  expect_slower(now().simulated->step_time, was().simulated->step_time, "simulated");
  ASSERT_TRUE(now().explained && was().explained);
  expect_slower(now().explained->step_time, was().explained->step_time, "explained");
  ASSERT_TRUE(now().winner && was().winner);
  expect_slower(now().winner->step_time, was().winner->step_time, "winner");
}

TEST_F(Calibrated, WhatRemainsIsSaid) {
  ASSERT_TRUE(now().compare.view && now().correction);
  const CompareView& view = *now().compare.view;
  const std::string said = remains_text(view, *now().correction);
  EXPECT_THAT(said, testing::HasSubstr("model's " + format_seconds(was().report.step_time)));
  EXPECT_THAT(said, testing::HasSubstr("simulated " + format_seconds(was().simulated->step_time)));
  EXPECT_THAT(said, testing::HasSubstr(signed_percent(view.relative()) + " remains"));
  CompareView estimated = view;
  estimated.origin = "estimated";
  EXPECT_EQ(remains_text(estimated, *now().correction), "");
}

TEST_F(Calibrated, TheCopiedCommandSaysWhatItPrints) {
  EXPECT_EQ(run_command(corrected_, "export.plan " + scratch_.path("plan.json")), "");
  EXPECT_EQ(run_command(corrected_, "export.command"), "");
  EXPECT_THAT(corrected_.take_copied(), testing::HasSubstr("shardwise simulate "));
  EXPECT_THAT(now().message,
              testing::HasSubstr("it prints " + format_seconds(was().simulated->step_time) +
                                 ", not calibrated"));
}

TEST_F(Calibrated, Neighbours) {
  ASSERT_FALSE(was().neighbours.empty());
  ASSERT_EQ(now().neighbours.size(), was().neighbours.size());
  for (std::size_t i = 0; i < was().neighbours.size(); ++i) {
    EXPECT_NEAR(now().neighbours[i].time_gained.value(),
                kSlower * was().neighbours[i].time_gained.value(),
                kNear * was().report.step_time.value());
  }
}

TEST_F(Calibrated, OrdersAndLinksOfTheMesh) {
  run("view.mesh");
  run("mesh.bandwidth infiniband 2");
  run("mesh.try pp-tp-dp_shard-dp_replicate");
  const MeshState& before = was().mesh;
  const MeshState& after = now().mesh;
  expect_slower(after.tried_step, before.tried_step, "tried order");
  ASSERT_EQ(after.facts->orders.size(), before.facts->orders.size());
  for (std::size_t i = 0; i < before.facts->orders.size(); ++i) {
    expect_slower(after.facts->orders[i].cost.step_time, before.facts->orders[i].cost.step_time,
                  "order");
  }
  ASSERT_FALSE(before.stretch.curves.empty());
  for (std::size_t tier = 0; tier < before.stretch.curves.size(); ++tier) {
    expect_slower(after.stretch.curves[tier].step_times[0],
                  before.stretch.curves[tier].step_times[0], "curve");
  }
  expect_slower(after.stretch.report->step_time, before.stretch.report->step_time, "links");
  expect_slower(*after.stretch.simulated_before, *before.stretch.simulated_before, "before");
  expect_slower(*after.stretch.simulated, *before.stretch.simulated, "simulated links");
  expect_slower(after.stretch.best->step_time, before.stretch.best->step_time, "best");
}

TEST_F(Calibrated, WhyNotOfTypedValues) {
  run("why.layout tp=8");
  const TypedWhy& before = was().exploring.why;
  const TypedWhy& after = now().exploring.why;
  ASSERT_TRUE(before.other && after.other) << before.text;
  expect_slower(after.other->step_time, before.other->step_time, "other");
  // The sentence says the same share.
  const auto share = [](const std::string& text) {
    return text.substr(text.find('('), text.find(')') - text.find('('));
  };
  EXPECT_EQ(share(after.text), share(before.text));
}

TEST_F(Calibrated, AStretchedStepAndWhatItIsWorth) {
  run("timeline.stretch backward 0.5");
  const Stretch& before = *was().timeline.stretch;
  const Stretch& after = *now().timeline.stretch;
  ASSERT_TRUE(before.step && after.step);
  expect_slower(after.step->report->step_time, before.step->report->step_time, "stretched");
  expect_slower(now().lanes->report->step_time, was().lanes->report->step_time, "as it is");
}

TEST_F(Calibrated, TheScalingMap) {
  if (test::kSanitized) GTEST_SKIP() << "searches a whole map twice";
  run("view.scaling");
  const ScalingState& before = was().scaling;
  const ScalingState& after = now().scaling;
  ASSERT_EQ(after.map.cells.size(), before.map.cells.size());
  for (std::size_t i = 0; i < before.map.cells.size(); ++i) {
    ASSERT_EQ(after.map.cells[i].layout, before.map.cells[i].layout);
    expect_slower(after.map.cells[i].time, before.map.cells[i].time, "cell");
  }
}

TEST_F(Calibrated, AnotherModelIsNotAndAPinOfOtherPredictionsGoes) {
  EXPECT_EQ(run_command(corrected_, "summary.pin"), "");
  ASSERT_TRUE(now().exploring.pinned);
  EXPECT_EQ(run_command(corrected_, "question.undo"), "");
  corrected_.settle();
  EXPECT_FALSE(now().correction);
  EXPECT_FALSE(now().exploring.pinned);
}

}  // namespace
}  // namespace shardwise::view
