#include "executor/recorder/measured_report.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/spec/report/report_json.h"
#include "tests/executor/engine/stand_in.h"
#include "tests/executor/recorder/hand_made_record.h"

namespace shardwise::exec::test {
namespace {

using enum MemoryCategory;

double ms(Seconds time) { return time.value() * 1e3; }

Plan two_ranks() {
  Layout layout;
  layout.zero_stage = 1;
  layout.dp_shard = 2;
  return laptop_plan("shardwise", layout, 1, false);
}

RankRecord ran(int rank, const StepRecord& step, std::int64_t growth) {
  RankRecord record;
  record.rank = rank;
  record.first = record.steady = step;
  record.growth_bytes = growth;
  record.clock = "this machine";
  return record;
}

// Rank 1 computes 9 ms before a reduction for which rank 0 is ready after 2. Its bytes move 3 ms,
// then rank 0 updates for 4 ms and rank 1 for 1: rank 1 computes 10 ms, rank 0 6. Rank 0 keeps more
// weights, but rank 1 has more activations in its pass.
std::vector<RankRecord> example() {
  const StepRecord early = Step()
                               .op(OpRole::backward, Stream::compute, {0, 0, 0, 2}, {})
                               .op(OpRole::reduce, Stream::reduce_scatter, {2, 2, 9, 12}, {0})
                               .in(GroupKind::dp_shard_cp)
                               .op(OpRole::optimizer, Stream::compute, {12, 12, 12, 16}, {1})
                               .item(weights, 100)
                               .item(activations, 50, 0, 1)
                               .record(17);
  const StepRecord late = Step()
                              .op(OpRole::backward, Stream::compute, {0, 0, 0, 9}, {})
                              .op(OpRole::reduce, Stream::reduce_scatter, {9, 9, 9, 12}, {0})
                              .in(GroupKind::dp_shard_cp)
                              .op(OpRole::optimizer, Stream::compute, {12, 12, 12, 13}, {1})
                              .item(weights, 80)
                              .item(activations, 90, 0, 1)
                              .record(16);
  return {ran(0, early, 3000), ran(1, late, 2000)};
}

TEST(MeasuredReport, HasTheStepOfTheRankThatComputesLongest) {
  const StepReport report = measured_report(two_ranks(), example());
  EXPECT_NEAR(ms(report.step_time), 16, 1e-9);
  EXPECT_NEAR(ms(report.time.backward), 9, 1e-9);
  EXPECT_NEAR(ms(report.time.dp_exposed), 3, 1e-9);
  EXPECT_NEAR(ms(report.time.optimizer), 1, 1e-9);
  EXPECT_NEAR(ms(report.time.input_exposed), 3, 1e-9);
  EXPECT_NEAR(ms(report.time.straggler), 0, 1e-9);  // the other waits for it
  EXPECT_NEAR(ms(report.time.total()), 16, 1e-9);
  ASSERT_EQ(report.by_axis.size(), 1U);
  EXPECT_EQ(report.by_axis.front().axis, "dp");
  EXPECT_NEAR(ms(report.by_axis.front().total), 3, 1e-9);
  EXPECT_NEAR(ms(report.by_axis.front().exposed), 3, 1e-9);
  ASSERT_TRUE(report.timeline.has_value());
  ASSERT_EQ(report.timeline->stages.size(), 1U);
  EXPECT_NEAR(ms(report.timeline->stages.front().computing), 10, 1e-9);
  EXPECT_NEAR(ms(report.timeline->stages.front().idle), 6, 1e-9);
  EXPECT_EQ(report.timeline->operations.size(), 3U);
  EXPECT_NEAR(report.timeline->overlap, 0, 1e-9);
  EXPECT_EQ(report.measured_ranks, 2);
}

TEST(MeasuredReport, HasTheRatesOfThatStep) {
  const Plan plan = two_ranks();
  const StepReport report = measured_report(plan, example());
  const auto tokens = static_cast<double>(plan.job.global_batch_size * plan.job.sequence_length);
  EXPECT_NEAR(report.tokens_per_s, tokens / 16e-3, 1e-6 * report.tokens_per_s);
  EXPECT_NEAR(report.tokens_per_s_per_gpu, tokens / 16e-3 / 2, 1e-6 * report.tokens_per_s);
}

// By phase: 100 after the begin and for the optimizer, of rank 0; 80 + 90 in the passes, of rank 1.
TEST(MeasuredReport, HasTheMostThatAnyRankHeldInEachPhase) {
  const StepReport report = measured_report(two_ranks(), example());
  ASSERT_EQ(report.stages.size(), 1U);
  const StageMemory& held = report.stages.front();
  EXPECT_EQ(held[MemoryPhase::after_init][weights], 100);
  for (const MemoryPhase pass :
       {MemoryPhase::first_forward_backward, MemoryPhase::steady_forward_backward}) {
    EXPECT_EQ(held[pass][weights], 80);
    EXPECT_EQ(held[pass][activations], 90);
  }
  EXPECT_EQ(held[MemoryPhase::steady_optimizer_step].total(), Bytes(100));
  EXPECT_EQ(report.verdict.point, Bytes(170));
  EXPECT_EQ(report.verdict.worst_phase, MemoryPhase::first_forward_backward);
  EXPECT_EQ(report.process_growth, Bytes(3000));
  // The course of rank 1, which held most: 170 from its pass to the end of the reduction.
  const StageTimeline stage = report.timeline.value_or(StepTimeline{}).stages.at(0);
  ASSERT_EQ(stage.memory.size(), 2U);
  EXPECT_EQ(stage.memory[0].allocated, Bytes(170));
  EXPECT_NEAR(ms(stage.memory[1].at), 12, 1e-9);
  EXPECT_EQ(stage.memory[1].allocated, Bytes(80));
  ASSERT_EQ(stage.at_peak.size(), 2U);
  EXPECT_EQ(stage.at_peak.front().category, activations);
}

// From rank 0's update over the reduction to the pass of rank 1, for which rank 0 waited.
TEST(MeasuredReport, HasTheCriticalPathOfAllRanksOfOneClock) {
  const Plan plan = two_ranks();
  std::vector<RankRecord> ranks = example();
  const auto path = [&plan](const std::vector<RankRecord>& of) {
    return ms(measured_report(plan, of).timeline.value_or(StepTimeline{}).critical_path);
  };
  EXPECT_NEAR(path(ranks), 4 + 3 + 9, 1e-9);
  // The busiest rank's own where moments do not compare, or a rank is missing.
  EXPECT_NEAR(path({ranks[1]}), 1 + 3 + 9, 1e-9);
  ranks[0].clock = "another";
  EXPECT_NEAR(path(ranks), 1 + 3 + 9, 1e-9);
}

TEST(MeasuredReport, SaysOfHowManyRanksItIsWhenReadBack) {
  const Result<StepReport> read =
      report_from_text(report_json(measured_report(two_ranks(), example())), "measured.json");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(read->measured_ranks, 2);
}

}  // namespace
}  // namespace shardwise::exec::test
