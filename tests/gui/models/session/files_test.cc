// What people open, in a session: the question changes, or what it is compared with, or nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gui/models/commands/commands.h"
#include "gui/models/compare/compare_model.h"
#include "gui/models/session/session.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/trace.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

class Opened : public testing::Test {
 protected:
  Opened() { session_.settle(); }
  /// \returns what is wrong, at once or with what was read
  std::string run(const std::string& line) {
    const std::string problem = run_command(session_, line);
    session_.settle();
    const std::string failure = session_.take_failure().message;
    return problem.empty() ? failure : problem;
  }
  std::string open(const std::string& name, const std::string& text) {
    return run("file.open " + scratch_.write_bytes(name, text));
  }
  StepReport run_report() const {
    StepReport report = sim::simulate(state().plan).report;
    report.origin = "measured";
    report.time.forward += report.step_time * 0.25;
    report.step_time = report.time.total();
    return report;
  }
  const AppState& state() const { return session_.state(); }
  test::Scratch scratch_;
  Session session_{test::small_plan()};
};

TEST_F(Opened, APlanBecomesTheQuestionAndCanBeUndone) {
  const std::string before = to_json(state().plan);
  Plan other = test::small_plan();
  other.layout.tp = 2;
  other.layout.dp_shard = 4;
  EXPECT_EQ(open("other.json", to_json(other)), "");
  EXPECT_EQ(to_json(state().plan), to_json(other));
  EXPECT_EQ(run("question.undo"), "");
  EXPECT_EQ(to_json(state().plan), before);
}

TEST_F(Opened, AReportAndATraceAreWhatThePlanIsComparedWith) {
  const std::string before = to_json(state().plan);
  EXPECT_EQ(open("r.json", report_json(run_report())), "");
  ASSERT_TRUE(state().compare.view);
  EXPECT_TRUE(state().compare.other->measured());
  EXPECT_NEAR(state().compare.view->relative(), 1 / 1.25 - 1, 1e-9);
  EXPECT_TRUE(state().compare.reading.empty());
  std::string trace;
  sim::write_trace(state().plan, sim::simulate(state().plan), 8,
                   [&](std::string_view piece) { trace += piece; });
  EXPECT_EQ(open("t.json", trace), "");
  EXPECT_FALSE(state().compare.other->whole());
  ASSERT_TRUE(state().compare.view);
  EXPECT_NEAR(state().compare.view->relative(), 0, 1e-6);
  EXPECT_EQ(to_json(state().plan), before);
}

TEST_F(Opened, AModelOrAClusterIsPutIntoTheQuestionWithItsBestLayout) {
  const std::string model = find_in_catalogue("models", "gpt2")->path.string();
  EXPECT_EQ(run("file.open " + model), "");
  EXPECT_EQ(state().plan.model.name, "gpt2");
  EXPECT_EQ(state().plan.cluster.name, "dgx-h100");
  EXPECT_EQ(state().plan.layout.world(), 8);
  const std::string cluster = find_in_catalogue("clusters", "dgx-a100")->path.string();
  EXPECT_EQ(run("file.open " + cluster), "");
  EXPECT_EQ(state().plan.cluster.name, "dgx-a100");
  EXPECT_EQ(state().plan.model.name, "gpt2");
}

TEST_F(Opened, WhatIsBrokenIsSaidAndAllStaysAsItWas) {
  EXPECT_EQ(open("r.json", report_json(run_report())), "");
  const std::string plan = to_json(state().plan);
  const auto other = state().compare.other;
  std::string negative = report_json(run_report());
  const std::size_t at = negative.find("\"step_time_s\": ") + 15;
  negative.insert(at, "-");
  const std::string head = R"({"otherData":{"schema":"shardwise.trace/1"},"traceEvents":[)";
  const auto span = [](int from, int length) {
    return "\n" + (R"({"ph":"X","name":"fwd.layer0.mb)" + std::to_string(from)) +
           R"(","cat":"fwd","pid":0,"tid":1,"ts":)" + std::to_string(from) +
           ",\"dur\":" + std::to_string(length) + "}";
  };
  const struct {
    const char* name;
    std::string text;
    const char* said;
  } broken_files[] = {
      {"cut.json", plan.substr(0, 100), "cut.json:"},
      {"negative.json", negative, "/step_time_s"},
      {"foreign.json", "{\"schema\": \"shardwise.comparison/1\"}", "shardwise.comparison/1"},
      {"later.json", "{\"schema\": \"shardwise.plan/9\"}", "shardwise.plan/9"},
      {"page.html", "<!doctype html><p>no plan</p>", "page.html"},
      {"array.json", "[{\"ph\": \"X\", \"ts\": -1e300, \"dur\": 1}]", "array.json:1"},
      {"overlaps.json", head + span(0, 10) + "," + span(5, 10) + "]}", "overlaps.json:3"},
      {"negative_span.json", head + span(0, -1) + "]}", "dur of an event is not a time"},
      {"late.json", head + span(0, 10) + ",", "the text ends too early"},
      {"noise.bin", std::string("\x00\x01\x02", 3), "noise.bin:1"},
  };
  for (const auto& broken : broken_files) {
    const std::string said = open(broken.name, broken.text);
    EXPECT_THAT(said, testing::HasSubstr(broken.said)) << broken.name;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_EQ(state().message, said) << broken.name;
    EXPECT_EQ(to_json(state().plan), plan) << broken.name;
    EXPECT_EQ(state().compare.other, other) << broken.name;
  }
  EXPECT_THAT(run("file.open /no/such/file"), testing::HasSubstr("no such file"));
  EXPECT_THAT(run("file.open /dev/null"), testing::HasSubstr("not a regular file"));
  EXPECT_THAT(run("file.open " + scratch_.folder().string()), testing::HasSubstr("a folder"));
}

TEST_F(Opened, SeveralFilesAreReadOneAfterTheOther) {
  Plan other = test::small_plan();
  other.layout.tp = 2;
  other.layout.dp_shard = 4;
  const std::string report = scratch_.write_bytes("r.json", report_json(run_report()));
  session_.reader().hold();
  session_.open_file(scratch_.write_bytes("p.json", to_json(other)));
  session_.open_file(report);
  EXPECT_FALSE(state().compare.reading.empty());
  session_.reader().release();
  session_.settle();
  EXPECT_EQ(state().plan.layout.tp, 2);
  ASSERT_TRUE(state().compare.other);
  EXPECT_EQ(state().compare.other->file, report);
}

TEST_F(Opened, ReadingCanBeStopped) {
  session_.reader().hold();
  session_.open_file(scratch_.write_bytes("r.json", report_json(run_report())));
  session_.stop_reading();
  EXPECT_TRUE(state().compare.reading.empty());
  session_.reader().release();
  session_.settle();
  EXPECT_FALSE(state().compare.other);
}

TEST_F(Opened, FollowsThePlanThatIsCompared) {
  EXPECT_EQ(open("r.json", report_json(run_report())), "");
  const double before = state().compare.view->relative();
  EXPECT_EQ(run("question.set micro_batch_size 2"), "");
  ASSERT_TRUE(state().compare.view);
  EXPECT_NE(state().compare.view->relative(), before);
  EXPECT_DOUBLE_EQ(
      state().compare.view->relative(),
      sim::simulate(state().plan).report.step_time / state().compare.other->report.step_time - 1);
  EXPECT_EQ(run("compare.close"), "");
  EXPECT_FALSE(state().compare.view);
}

TEST_F(Opened, CalibratesEveryPredictionByTheRunAndTakesItBack) {
  EXPECT_EQ(run("compare.calibrate"), "open a measured run first (compare.open FILE)");
  const StepReport measured = run_report();
  const StepReport before = state().report;
  const Answer rows = state().answer;
  EXPECT_EQ(open("r.json", report_json(measured)), "");
  EXPECT_EQ(run("compare.calibrate"), "");
  // The run's own configuration is predicted as it was measured.
  EXPECT_NEAR(state().report.step_time.value(), measured.step_time.value(), 1e-9);
  const double slower = measured.step_time / before.step_time;
  EXPECT_NEAR(state().report.mfu, before.mfu / slower, 1e-12);
  ASSERT_EQ(state().answer.rows.size(), rows.rows.size());
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    EXPECT_NEAR(state().answer.rows[i].time / rows.rows[i].time, slower, 1e-9);
    EXPECT_NEAR(state().answer.rows[i].tokens_per_s * slower / rows.rows[i].tokens_per_s, 1, 1e-9);
    EXPECT_EQ(state().answer.rows[i].memory, rows.rows[i].memory);
  }
  EXPECT_EQ(state().answer.ranked, rows.ranked);
  // Another layout is corrected by the same share.
  EXPECT_EQ(run("question.set micro_batch_size 2"), "");
  const Plan& plan = state().plan;
  const StepReport alone = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  EXPECT_NEAR(state().report.step_time / alone.step_time, slower, 1e-9);
  EXPECT_EQ(run("question.undo"), "");
  EXPECT_TRUE(state().correction);
  EXPECT_EQ(run("question.undo"), "");
  EXPECT_FALSE(state().correction);
  EXPECT_EQ(state().report.step_time, before.step_time);
  EXPECT_EQ(run("question.redo"), "");
  EXPECT_NEAR(state().report.step_time.value(), measured.step_time.value(), 1e-9);
}

TEST_F(Opened, CalibratesByNoPredictionAndByNoOtherModel) {
  StepReport report = run_report();
  report.origin = "predicted";
  EXPECT_EQ(open("p.json", report_json(report)), "");
  EXPECT_THAT(run("compare.calibrate"), testing::HasSubstr("is a prediction"));
  report.origin = "measured";
  report.model = "other";
  EXPECT_EQ(open("m.json", report_json(report)), "");
  EXPECT_THAT(run("compare.calibrate"), testing::HasSubstr("the estimate is of small"));
  EXPECT_FALSE(state().correction);
}

TEST_F(Opened, LooksAtTheLargestDifferenceOnTheTimeline) {
  EXPECT_EQ(run("compare.worst"), "nothing is compared");
  StepReport measured = sim::simulate(state().plan).report;
  measured.origin = "measured";
  for (OperationTime& each : measured.timeline->operations) {
    if (each.name == "fwd.layer5") each.time = each.time * 9;
    if (each.name == "bwd.layer2") each.time = each.time * 1.5;
  }
  EXPECT_EQ(open("r.json", report_json(measured)), "");
  EXPECT_EQ(run("compare.by"), "");  // by operation
  EXPECT_EQ(run("compare.worst"), "");
  EXPECT_EQ(state().compare.looked_at, "fwd.layer5");
  EXPECT_EQ(state().workspace, Workspace::timeline);
  EXPECT_THAT(state().message, testing::StartsWith("1 of 2: fwd.layer5"));
  EXPECT_THAT(state().message, testing::Not(testing::HasSubstr("timeline")));
  const CompareRow& row = state().compare.view->rows[2][0];
  EXPECT_LE(state().range.from, row.from);
  EXPECT_GE(state().range.to, row.to);
  EXPECT_LT(state().range.length(), state().lanes->length / 2);
  EXPECT_EQ(run("compare.worst"), "");
  EXPECT_EQ(state().compare.looked_at, "bwd.layer2");
  EXPECT_EQ(run("compare.worst"), "");  // from the first again
  EXPECT_EQ(state().compare.looked_at, "fwd.layer5");
  EXPECT_EQ(run("compare.worst 9"), "the list has no such row");
}

TEST(Looks, SayWhatHasNoPlaceOnTheTimeline) {
  CompareView view;
  CompareRow part;
  part.name = "compute";
  part.measured = Seconds(0.25);
  CompareRow lacking = part;
  lacking.operation = "fwd.layer5";
  view.rows[0] = {part, lacking};
  EXPECT_THAT(look_text(view, CompareBy::part, 0, true),
              testing::MatchesRegex("1 of 2: compute, -250 ms: it has no place of its own.*"));
  EXPECT_THAT(look_text(view, CompareBy::part, 1, true),
              testing::MatchesRegex("2 of 2: .*the plan's step lacks it.*"));
  EXPECT_THAT(look_text(view, CompareBy::part, 1, false), testing::HasSubstr("not simulated"));
}

}  // namespace
}  // namespace shardwise::view
