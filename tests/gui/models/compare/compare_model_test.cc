#include "gui/models/compare/compare_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gui/models/memory/memory_model.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/trace.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

std::size_t all_rows(const CompareView& view) {
  std::size_t count = 0;
  for (const std::vector<CompareRow>& rows : view.rows) count += rows.size();
  return count;
}

/// A file of a step of the plan, simulated: its report, its estimate, its trace, or the plan.
class Files : public testing::Test {
 protected:
  Compared read(const std::string& name, const std::string& text) const {
    Result<Compared> found = read_compared(scratch_.write_bytes(name, text));
    EXPECT_TRUE(found.ok()) << to_string(found.problems());
    return *std::move(found);
  }
  std::string trace(std::size_t ranks) const {
    std::string text;
    sim::write_trace(plan_, simulation_, ranks, [&](std::string_view piece) { text += piece; });
    return text;
  }
  test::Scratch scratch_;
  Plan plan_ = test::two_stage_plan();
  sim::Simulation simulation_ = sim::simulate(plan_);
};

TEST_F(Files, OfTheSameStepDifferInNothing) {
  for (const Compared& other :
       {read("plan.json", to_json(plan_)), read("report.json", report_json(simulation_.report)),
        read("estimate.json", report_json(test::report_of(plan_))), read("trace.json", trace(8))}) {
    const CompareView view = test::compared(plan_, other);
    EXPECT_EQ(all_rows(view), 0U) << other.file << " " << other.origin;
    EXPECT_NEAR(view.relative(), 0, 1e-6) << other.file;
  }
}

TEST_F(Files, SayTheirOriginByWhatTheyHave) {
  EXPECT_EQ(read("r.json", report_json(simulation_.report)).origin, "simulated");
  EXPECT_EQ(read("e.json", report_json(test::report_of(plan_))).origin, "estimated");
  EXPECT_EQ(read("t.json", trace(8)).origin, "simulated");
  StepReport measured = simulation_.report;
  measured.origin = "measured";
  EXPECT_EQ(read("m.json", report_json(measured)).origin, "measured");
}

TEST_F(Files, WithSlowerOperationsPredictTooLittleAndTheSumOfRowsIsTheDifference) {
  StepReport measured = simulation_.report;
  measured.origin = "measured";
  Seconds added;
  for (OperationTime& each : measured.timeline->operations) {
    if (!each.name.starts_with("bwd.layer3")) continue;
    added += each.time * 0.5;
    each.time = each.time * 1.5;
  }
  ASSERT_GT(added, Seconds(0));
  const CompareView view = test::compared(plan_, compared_report(measured, "m.json"));
  const auto& rows = view.rows[static_cast<std::size_t>(CompareBy::operation)];
  ASSERT_FALSE(rows.empty());
  double sum = 0;
  for (const CompareRow& row : rows) {
    EXPECT_TRUE(row.name.starts_with("bwd.layer3")) << row.name;
    EXPECT_LT(row.difference(), Seconds(0));  // predicted less measured
    EXPECT_LT(row.from, row.to);
    EXPECT_EQ(row.operation_stage, row.stage);
    sum += row.difference().value();
  }
  EXPECT_NEAR(sum, -added.value(), 1e-9);
  const auto& kinds = view.rows[static_cast<std::size_t>(CompareBy::kind)];
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds.front().name, "layer, backward");
  EXPECT_NEAR(kinds.front().difference().value(), -added.value() / 2, 1e-9);  // two stages' mean
  EXPECT_TRUE(kinds.front().operation.starts_with("bwd.layer3"));
}

TEST_F(Files, NameWhatOneSideLacks) {
  StepReport measured = simulation_.report;
  measured.origin = "measured";
  auto& operations = measured.timeline->operations;
  std::erase_if(operations, [](const OperationTime& each) { return each.name == "fwd.layer1"; });
  operations.push_back({"data.wait", 0, "compute", 1, Seconds(0.1), {}});
  const CompareView view = test::compared(plan_, compared_report(measured, "m.json"));
  EXPECT_THAT(view.notes, testing::Contains("the other step lacks operations: fwd.layer1"));
  EXPECT_THAT(view.notes, testing::Contains("the plan's step lacks operations: data.wait"));
  const auto& kinds = view.rows[static_cast<std::size_t>(CompareBy::kind)];
  EXPECT_EQ(kinds.front().name, "names that the simulation lacks");
  EXPECT_FALSE(kinds.front().in_predicted);
}

TEST_F(Files, OfAnotherQuestionSayThatTheWorkIsAnother) {
  Plan other = plan_;
  other.job.global_batch_size *= 2;
  other.layout.micro_batch_size = 2;
  const CompareView view = test::compared(plan_, compared_plan(other, "o.json"));
  EXPECT_THAT(view.notes, testing::Contains("different batch sizes: the steps do different work"));
  EXPECT_THAT(view.notes, testing::Contains(testing::HasSubstr("micro_batch_size 2 instead of 1")));
  const StepReport both[] = {sim::simulate(plan_).report, sim::simulate(other).report};
  EXPECT_DOUBLE_EQ(view.relative(), both[0].step_time / both[1].step_time - 1);
}

TEST_F(Files, ThatAreNoneAreRefusedWithTheirPlace) {
  const auto said = [&](const std::string& text) {
    const Result<Compared> found = read_compared(scratch_.write_bytes("x.json", text));
    return found.ok() ? std::string() : to_string(found.problems().front());
  };
  EXPECT_THAT(said(""), testing::HasSubstr("the file is empty"));
  EXPECT_THAT(said("{\"schema\": \"shardwise.other/1\"}"),
              testing::HasSubstr("x.json:1:12: /schema: shardwise.other/1 is not opened here"));
  EXPECT_THAT(said("{\"a\": [1, 2"), testing::HasSubstr("x.json:1:"));
  EXPECT_THAT(said("{\"hidden_size\": 5}"), testing::HasSubstr("nothing that a plan is compared"));
  const std::string cut = trace(8).substr(0, 5000);
  EXPECT_THAT(said(cut), testing::HasSubstr("the text ends too early"));
}

TEST(MemoryTicks, OfAPredictionAreItsTotals) {
  const Plan plan = test::two_stage_plan();
  const StepReport report = test::report_of(plan);
  for (const MemoryBy by : {MemoryBy::phase, MemoryBy::stage}) {
    const auto stacks = memory_stacks(report, by);
    const auto ticks = memory_ticks(report, report, by);
    ASSERT_EQ(ticks.size(), stacks.size());
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      ASSERT_TRUE(ticks[i]);
      EXPECT_EQ(ticks[i]->at, stacks[i].total);
      EXPECT_EQ(ticks[i]->value, stacks[i].total);
    }
  }
}

TEST(MemoryTicks, OfARunStandOnWhatItDoesNotMeasure) {
  const Plan plan = test::two_stage_plan();
  const StepReport report = test::report_of(plan);
  StepReport run = report;
  run.origin = "measured";
  for (StageMemory& stage : run.stages) {
    for (Ledger& phase : stage.phases) {
      phase[MemoryCategory::runtime_context] = 0;
      phase[MemoryCategory::communicator] = 0;
    }
  }
  const auto ticks = memory_ticks(report, run, MemoryBy::phase);
  const auto stacks = memory_stacks(report, MemoryBy::phase);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    ASSERT_TRUE(ticks[i]);
    EXPECT_EQ(ticks[i]->at,
              stacks[i].total);  // measured as predicted: the tick is on the bar's end
    EXPECT_LT(ticks[i]->value, stacks[i].total);
  }
  run.stages.clear();
  for (const auto& tick : memory_ticks(report, run, MemoryBy::stage)) EXPECT_FALSE(tick);
}

}  // namespace
}  // namespace shardwise::view
