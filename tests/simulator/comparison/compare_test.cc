#include "simulator/comparison/compare.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

namespace shardwise::sim {
namespace {

StepReport report_of(double forward, double gather, double norm) {
  StepReport report;
  report.time.forward = Seconds(forward);
  report.time.dp_exposed = Seconds(gather);
  report.step_time = report.time.total();
  report.by_axis = {{"dp", Seconds(9), Seconds(gather)}};
  StepTimeline timeline;
  timeline.stages.emplace_back();
  timeline.operations = {{"fwd.layer0", 0, "compute", 2, Seconds(forward), {}},
                         {"gather.layer0", 0, "all_gather", 2, Seconds(gather), {}}};
  if (norm > 0) {
    timeline.operations.push_back({"gradient_norm", 0, "compute", 1, Seconds(norm), {}});
  }
  report.timeline = timeline;
  return report;
}

TEST(Compare, SortsOperationsByTheirShareOfTheDifferenceWhateverItsSign) {
  const Comparison found = compare(report_of(4, 1, 0), report_of(3, 4, 0.5));
  ASSERT_EQ(found.operations.size(), 3U);
  EXPECT_EQ(found.operations[0].name, "gather.layer0");
  EXPECT_EQ(found.operations[0].difference(), Seconds(3));
  EXPECT_EQ(found.operations[1].name, "fwd.layer0");
  EXPECT_EQ(found.operations[1].difference(), Seconds(-1));
  EXPECT_EQ(found.operations[2].name, "gradient_norm");
  EXPECT_FALSE(found.operations[2].in_first);
  EXPECT_DOUBLE_EQ(found.relative(), 7.0 / 5 - 1);
}

TEST(Compare, HasPartsThatAddUpToTheDifferenceOfTheSteps) {
  const Comparison found = compare(report_of(4, 1, 0), report_of(3, 4, 0));
  Seconds sum;
  for (const ComparedTime& part : found.parts) sum += part.difference();
  EXPECT_EQ(sum, found.second_step - found.first_step);
}

// A run does not measure what NVIDIA's libraries take.
TEST(Compare, ComparesTheMemoryThatRanksHoldThemselvesWithARuns) {
  StepReport predicted = report_of(4, 1, 0);
  predicted.stages.emplace_back();
  Ledger& fullest = predicted.stages[0][MemoryPhase::steady_forward_backward];
  fullest[MemoryCategory::weights] = 100;
  StepReport measured = predicted;
  measured.origin = "measured";
  fullest[MemoryCategory::runtime_context] = 50;
  fullest[MemoryCategory::communicator] = 7;
  const Comparison found = compare(predicted, measured);
  EXPECT_EQ(found.first_peak, Bytes(100));
  EXPECT_EQ(found.second_peak, Bytes(100));
  EXPECT_EQ(compare(predicted, predicted).first_peak, Bytes(157));
}

TEST(Compare, FindsNothingBetweenAReportAndItself) {
  const Comparison found = compare(report_of(4, 1, 1), report_of(4, 1, 1));
  for (const ComparedTime& row : found.operations) EXPECT_EQ(row.difference(), Seconds(0));
  EXPECT_EQ(found.relative(), 0);
}

/// A layer of so many seconds on each of these stages.
StepReport on_stages(std::initializer_list<std::pair<std::int32_t, double>> places) {
  StepReport report;
  report.step_time = Seconds(1);
  report.timeline.emplace();
  for (const auto& [stage, seconds] : places) {
    report.timeline->operations.push_back(
        {"fwd.layer3", stage, "compute", 1, Seconds(seconds), {}});
  }
  return report;
}

TEST(Compare, JoinsALayerThatIsOnAnotherStage) {
  for (const bool later : {false, true}) {
    const StepReport here = on_stages({{later ? 2 : 0, 3.0}});
    const StepReport there = on_stages({{1, 5.0}});
    const Comparison found = compare(here, there);
    ASSERT_EQ(found.operations.size(), 1U);
    EXPECT_EQ(found.operations[0].difference(), Seconds(2));
    EXPECT_EQ(found.operations[0].stage, later ? 2 : 0);
    EXPECT_EQ(found.operations[0].second_stage, 1);
  }
}

// As under DualPipe, where every layer is on two stages.
TEST(Compare, JoinsALayerOfTwoStagesWhereItStaysAndWhereItMoves) {
  const Comparison found = compare(on_stages({{0, 1}, {3, 2}}), on_stages({{1, 7}, {3, 4}}));
  ASSERT_EQ(found.operations.size(), 2U);
  EXPECT_EQ(found.operations[0].difference(), Seconds(6));
  EXPECT_EQ(found.operations[0].second_stage, 1);
  EXPECT_EQ(found.operations[1].difference(), Seconds(2));
  EXPECT_EQ(found.operations[1].second_stage, 3);
  const Comparison fewer = compare(on_stages({{0, 1}, {3, 2}}), on_stages({{1, 7}}));
  ASSERT_EQ(fewer.operations.size(), 2U);
  EXPECT_EQ(fewer.operations[0].second_stage, 1);
  EXPECT_FALSE(fewer.operations[1].in_second);
}

TEST(Compare, JoinsNoOperationsWhenOneReportHasNoTimeline) {
  StepReport closed_form = report_of(4, 1, 0);
  closed_form.timeline.reset();
  const Comparison found = compare(closed_form, report_of(4, 1, 0));
  EXPECT_TRUE(found.operations.empty());
  EXPECT_EQ(found.parts.size(), 2U);
}

}  // namespace
}  // namespace shardwise::sim
