#include "simulator/comparison/kind_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/comparison/predicted_work.h"
#include "simulator/traces/operation_record.h"
#include "simulator/traces/trace.h"
#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

Plan plan_of(int pp) {
  Plan plan = {
      *load_model("gpt2"), *find_cluster("dgx-h100"), {}, *find_engine("megatron_ddp"), {}};
  plan.layout.zero_stage = 1;
  plan.layout.pp = pp;
  plan.layout.dp_shard = 8 / pp;
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 32;
  return plan;
}

std::string simulated_trace(const Plan& plan, const Simulation& made) {
  std::string text;
  write_trace(plan, made, 64, [&text](std::string_view piece) { text += piece; });
  return text;
}

TracedRun read(const std::string& text) {
  Result<TracedRun> run = read_trace(source_of(text), "t.json");
  EXPECT_TRUE(run.ok()) << to_string(run.problems());
  return *std::move(run);
}

class Roundtrip : public testing::TestWithParam<Granularity> {};

TEST_P(Roundtrip, FindsNoDifferenceBetweenAStepAndItsTrace) {
  const Plan plan = plan_of(2);
  SimulationOptions options;
  options.granularity = GetParam();
  const Simulation made = simulate(plan, options);
  const TracedRun run = read(simulated_trace(plan, made));
  ASSERT_TRUE(run.ours());
  EXPECT_EQ(run.ranks, 2U);
  EXPECT_EQ(run.head.granularity, GetParam() == Granularity::layer ? "layer" : "kernel");
  const TraceComparison found = compare_trace(run, plan, made);
  EXPECT_TRUE(found.same_plan);
  EXPECT_EQ(found.joined, found.operations.size());
  // Times in a trace are rounded to a nanosecond, of a start and of a duration.
  for (const ComparedTime& row : found.operations) {
    EXPECT_NEAR(row.difference().value(), 0, 16 * 1.5e-9) << row.name;
  }
  EXPECT_NEAR(found.step.measured.length.value(), found.step.predicted.length.value(), 2e-9);
  for (const ComparedKind& row : found.step.kinds) {
    ASSERT_TRUE(row.measured && row.predicted);
    EXPECT_EQ(row.measured->count, row.predicted->count);
    EXPECT_NEAR(row.difference().value(), 0, 1e-9 * static_cast<double>(row.measured->count));
  }
}
INSTANTIATE_TEST_SUITE_P(Granularities, Roundtrip,
                         testing::Values(Granularity::layer, Granularity::kernel));

TEST(PredictedProfile, HasPartsThatAddUpToTheStep) {
  const Plan plan = plan_of(2);
  SimulationOptions options;
  options.granularity = Granularity::kernel;
  const Simulation made = simulate(plan, options);
  for (std::size_t s = 0; s < 2; ++s) {
    const StepProfile step = predicted_profile(made, s);
    EXPECT_NEAR((step.computing + step.exposed + step.idle).value(), step.length.value(), 1e-12);
    EXPECT_GE(step.idle.value(), -1e-12);
    EXPECT_LE(step.exposed, step.communicating);
  }
}

TEST(PredictedProfile, CountsWaitingForOthersAsIdleTimeUnlikeAProfiler) {
  const Simulation made = simulate(plan_of(2));
  const StepProfile seen = predicted_profile(made, 1);
  const StepProfile profiled = profiled_prediction(made, 1);
  EXPECT_EQ(seen.computing, profiled.computing);
  EXPECT_LT(seen.communicating, profiled.communicating);
  EXPECT_GT(seen.idle, profiled.idle);
  // The streams' busy times, but for what runs at once.
  Seconds moving;
  for (const StreamTime& stream : made.report.timeline->stages[1].streams) {
    if (stream.stream != name_of(Stream::compute)) moving += stream.busy;
  }
  EXPECT_LE(seen.communicating.value(), moving.value() + 1e-12);
}

TEST(CompareTrace, KnowsLayersThatAreOnAnotherStage) {
  const Plan traced = plan_of(4);
  const TracedRun run = read(simulated_trace(traced, simulate(traced)));
  const Plan plan = plan_of(2);
  const Simulation made = simulate(plan);
  const TraceComparison found = compare_trace(run, plan, made);
  EXPECT_FALSE(found.same_plan);
  const Simulation again = simulate(traced);
  const StageTimeline& same = again.report.timeline->stages[found.stage];
  EXPECT_NEAR(found.step.measured.computing.value(), same.computing.value(), 1e-6);
  for (const ComparedTime& row : found.operations) {
    if (row.name.starts_with("fwd.") || row.name.starts_with("bwd.")) {
      EXPECT_TRUE(row.in_first && row.in_second) << row.name << row.stage;
    }
  }
}

TEST(CompareSteps, SortsByWhatAKindMakesOfTheDifference) {
  StepProfile measured;
  measured.kinds = {{WorkKind::gemm, StepPhase::forward, 2, Seconds(5), Seconds(5)},
                    {WorkKind::all_gather, StepPhase::forward, 2, Seconds(9), Seconds(1)}};
  StepProfile predicted;
  predicted.kinds = {{WorkKind::gemm, StepPhase::forward, 2, Seconds(4), Seconds(4)},
                     {WorkKind::copy, StepPhase::backward, 1, Seconds(3), Seconds(3)},
                     {WorkKind::all_gather, StepPhase::forward, 2, Seconds(1), Seconds(1)}};
  const StepComparison found = compare_steps(measured, predicted);
  ASSERT_EQ(found.kinds.size(), 3U);
  EXPECT_EQ(found.kinds[0].kind, WorkKind::copy);
  EXPECT_FALSE(found.kinds[0].measured);
  EXPECT_EQ(found.kinds[1].kind, WorkKind::gemm);
  EXPECT_EQ(found.kinds[1].difference(), Seconds(-1));
  // All of its eight seconds were hidden: it makes no difference.
  EXPECT_EQ(found.kinds[2].difference(), Seconds(0));
}

TEST(CompareSteps, JoinsOnTheKindAloneWhereATraceTellsNoPhases) {
  StepProfile measured;
  measured.kinds = {{WorkKind::gemm, StepPhase::unknown, 4, Seconds(5), Seconds(5)}};
  StepProfile predicted;
  predicted.kinds = {{WorkKind::gemm, StepPhase::forward, 2, Seconds(2), Seconds(2)},
                     {WorkKind::gemm, StepPhase::backward, 2, Seconds(4), Seconds(4)}};
  const StepComparison found = compare_steps(measured, predicted);
  EXPECT_FALSE(found.by_phase);
  ASSERT_EQ(found.kinds.size(), 1U);
  EXPECT_EQ(found.kinds[0].predicted->count, 4);
  EXPECT_EQ(found.kinds[0].difference(), Seconds(1));
}

TEST(OperationRecord, GivesEachRunOfAnOperationToAStep) {
  const std::string text = R"({"otherData": {"schema": "shardwise.trace/1", "origin": "measured"},
    "traceEvents": [
    {"ph":"M","name":"process_name","pid":4,"args":{"name":"rank 4, stage 1"}},
    {"ph":"X","name":"fwd.layer0.mb1","cat":"fwd","pid":4,"tid":0,"ts":300,"dur":30},
    {"ph":"X","name":"fwd.layer0.mb0","cat":"fwd","pid":4,"tid":0,"ts":100,"dur":10},
    {"ph":"X","name":"fwd.layer0.mb0","cat":"fwd","pid":4,"tid":0,"ts":270,"dur":20,
     "args":{"waited_us":5}},
    {"ph":"X","name":"fwd.layer0.mb1","cat":"fwd","pid":4,"tid":0,"ts":110,"dur":10}]})";
  const TracedRun run = read(text);
  ASSERT_EQ(run.operations.size(), 2U);
  EXPECT_NEAR(run.operations[0].length.value(), 20e-6, 1e-12);
  EXPECT_NEAR(run.operations[1].length.value(), 60e-6, 1e-12);
  EXPECT_EQ(run.head.origin, "measured");
  ASSERT_EQ(run.operations[1].operations.size(), 1U);
  EXPECT_EQ(run.operations[1].operations[0].name, "fwd.layer0");
  EXPECT_EQ(run.operations[1].operations[0].stage, 1);
  EXPECT_EQ(run.operations[1].operations[0].count, 2);
  EXPECT_NEAR(run.operations[1].operations[0].time.value(), 45e-6, 1e-12);
}

TEST(WithoutMicrobatch, TakesTheNumberOutOfAName) {
  EXPECT_EQ(without_microbatch("fwd.layer12.mb3"), "fwd.layer12");
  EXPECT_EQ(without_microbatch("bwd.layer12.mb13.mlp.down_proj"), "bwd.layer12.mlp.down_proj");
  EXPECT_EQ(without_microbatch("optimizer"), "optimizer");
  EXPECT_EQ(without_microbatch("fwd.mbconv"), "fwd.mbconv");
}

TEST(StageOfRank, FollowsTheOrderOfTheMesh) {
  Layout layout;
  layout.tp = 2;
  layout.pp = 4;
  layout.dp_shard = 2;
  EXPECT_EQ(stage_of_rank(layout, 0), 0U);
  EXPECT_EQ(stage_of_rank(layout, layout.world() - 1), 3U);
}

}  // namespace
}  // namespace shardwise::sim
