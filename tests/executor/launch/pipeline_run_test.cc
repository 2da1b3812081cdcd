// Pipelines, as people start them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/report/report_json.h"
#include "tests/executor/launch/plans.h"
#include "tests/executor/launch/trained_plan.h"
#include "tests/support/command.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kPipelineSteps = 10;

/// A Llama of four blocks with a head of its own.
Plan pipeline_plan(std::int32_t pp, int zero_stage = 0, int dp_shard = 1) {
  Plan plan = tiny_plan("shardwise", zero_stage, dp_shard, 4);
  plan.model = shardwise::test::llama(4, 32, 88, 4, 2, 256);
  plan.model.model_type = "llama";
  plan.layout.pp = pp;
  plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
  return plan;
}

/// pipeline_plan() whose steps have eight sequences.
Plan plan_of_eight(std::int32_t pp, int zero_stage, int dp_shard) {
  Plan plan = pipeline_plan(pp, zero_stage, dp_shard);
  plan.job.global_batch_size = 8;
  return plan;
}

std::vector<std::string> losses(const Plan& plan, Started started = Started::threads) {
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  const auto [program, arguments] =
      command_of(started, static_cast<int>(plan.layout.world()),
                 {scratch.write(plan), "--data", kTrainingText, "--steps",
                  std::to_string(kPipelineSteps), "--metrics", metrics, "--learning-rate", "0.01"});
  const Outcome done = run_program(program, arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return losses_of(metrics);
}

TEST(PipelineRun, TrainsALlamaWithTheBitsOfOneRank) {
  for (const DType precision : {DType::fp32, DType::bf16}) {
    Plan plan = pipeline_plan(1);
    plan.job.precision = precision;
    const std::vector<std::string> alone = losses(plan);
    ASSERT_EQ(alone.size(), kPipelineSteps);
    for (const std::int32_t pp : {2, 4}) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
        Plan split = pipeline_plan(pp);
        split.layout.schedule = schedule;
        split.job.precision = precision;
        EXPECT_EQ(losses(split), alone) << name_of(schedule) << ", pp " << pp;
      }
    }
  }
}

TEST(PipelineRun, GivesProcessesTheBitsOfThreads) {
  const Plan plan = pipeline_plan(2, 3, 2);
  const std::vector<std::string> threads = losses(plan);
  EXPECT_EQ(threads, losses(pipeline_plan(1, 3, 2)));
  for (const Started started : ways_of_processes()) EXPECT_EQ(losses(plan, started), threads);
}

// Embedding and head have one table, on two stages, whole or in shards.
TEST(PipelineRun, TrainsModelsOfOneTableAsOneRankDoes) {
  for (const char* const name : {"gpt2-tiny", "llama-tiny"}) {
    std::vector<std::vector<double>> curves;
    for (Plan plan : {plan_of_eight(1, 0, 1), plan_of_eight(2, 0, 1), plan_of_eight(2, 3, 2)}) {
      plan.model = *load_model(name);
      const Scratch scratch;
      const std::string metrics = scratch.path("metrics.jsonl");
      const Outcome done = shardwise_run({scratch.write(plan), "--data", kTrainingText, "--steps",
                                          std::to_string(kPipelineSteps), "--metrics", metrics});
      ASSERT_EQ(done.exit_code, 0) << done.err;
      curves.push_back(numbers_of(metrics, "loss"));
    }
    ASSERT_EQ(curves[0].size(), kPipelineSteps);
    for (const std::vector<double>& curve : curves) {
      for (std::size_t step = 0; step < curve.size(); ++step) {
        EXPECT_NEAR(curve[step], curves[0][step], 1e-5 * curves[0][step]) << name;
      }
    }
  }
}

// Of every stage, category and phase to the byte, temporaries of a forward pass with its
// activations.
TEST(PipelineRun, HoldsTheBytesOfTheLedger) {
  for (const bool tied : {false, true}) {
    for (const auto& [zero_stage, dp_shard] : {std::pair(0, 1), std::pair(1, 2), std::pair(3, 2)}) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
        Plan plan = pipeline_plan(2, zero_stage, dp_shard);
        if (tied) plan.model = *load_model("gpt2-tiny");
        plan.layout.schedule = schedule;
        const Scratch scratch;
        const std::string path = scratch.path("report.json");
        const Outcome done = shardwise_run(
            {scratch.write(plan), "--data", kTrainingText, "--steps", "3", "--report", path});
        ASSERT_EQ(done.exit_code, 0) << done.err;
        const Result<StepReport> report = read_report(path);
        ASSERT_TRUE(report) << to_string(report.problems());
        ASSERT_EQ(report->stages.size(), 2U);
        const LayoutMemory predicted =
            layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
        for (std::size_t stage = 0; stage < 2; ++stage) {
          for (std::size_t p = 0; p < kMemoryPhases; ++p) {
            const auto phase = static_cast<MemoryPhase>(p);
            EXPECT_EQ(in_categories(report->stages[stage][phase]),
                      in_categories(predicted.stages[stage][phase]))
                << fmt::format("stage {}, {}, ZeRO-{}, {}{}", stage, name_of(schedule), zero_stage,
                               name_of(phase), tied ? ", tied" : "");
          }
        }
      }
    }
  }
}

TEST(PipelineRun, IsRefusedBeforeAnythingIsAllocatedWhereItCannotBeExecuted) {
  const Scratch scratch;
  const auto refusal = [&](const Plan& plan) {
    const Outcome refused =
        shardwise_run({scratch.write(plan), "--data", kTrainingText, "--steps", "2"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.out, IsEmpty());
    return refused.err;
  };
  Plan plan = pipeline_plan(2);
  plan.layout.schedule = PipelineSchedule::zb_h1;
  EXPECT_THAT(refusal(plan), HasSubstr("/layout/schedule: zb_h1 cannot be executed\n"
                                       "    one_f_one_b, gpipe, looped_bfs are"));
}

// Five steps under one plan, three more under another; a third run goes on from the same folder.
TEST(PipelineRun, ContinuesTheCurveOfAnyMeshUnderAnyOther) {
  struct Pair {
    Plan before;
    Plan after;
    Started started = Started::threads;
  };
  const std::vector<Pair> pairs = {
      {plan_of_eight(2, 3, 2), plan_of_eight(1, 0, 1)},
      {plan_of_eight(1, 3, 2), plan_of_eight(4, 0, 1)},
      {plan_of_eight(4, 0, 1), plan_of_eight(2, 2, 2)},
      {plan_of_eight(2, 0, 1), plan_of_eight(2, 3, 2), ways_of_processes().front()}};
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  const auto run = [&](const Plan& plan, Started started, std::vector<std::string> more) {
    more.insert(more.begin(), {scratch.write(plan), "--data", kTrainingText, "--metrics", metrics,
                               "--learning-rate", "0.01"});
    const auto [program, arguments] =
        command_of(started, static_cast<int>(plan.layout.world()), more);
    const Outcome done = run_program(program, arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  run(plan_of_eight(1, 0, 1), Started::threads, {"--steps", "8"});
  const std::vector<std::string> whole = losses_of(metrics);
  ASSERT_EQ(whole.size(), 8U);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string folder = scratch.path(fmt::format("run{}", i));
    const Layout& before = pairs[i].before.layout;
    run(pairs[i].before, pairs[i].started, {"--steps", "5", "--checkpoint-dir", folder});
    const Outcome verified = shardwise_run({"verify", folder});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
    EXPECT_THAT(verified.out, HasSubstr(fmt::format("39 tensors in {} files", before.world())));
    const std::string said =
        run(pairs[i].after, pairs[i].started,
            {"--steps", "8", "--checkpoint-dir", folder, "--resume", "latest"});
    const std::string stages = before.pp > 1 ? fmt::format("pp {}, ", before.pp) : "";
    EXPECT_THAT(said, HasSubstr(fmt::format("ZeRO-{}, {}dp_shard {}", before.zero_stage, stages,
                                            before.dp_shard)));
    EXPECT_EQ(losses_of(metrics), whole) << i;
  }
}

// Embedding and head share a table: the run that goes on has its copy from the checkpoint.
TEST(PipelineRun, ContinuesTheCurveOfAModelOfOneTable) {
  Plan plan = pipeline_plan(2);
  plan.model = *load_model("gpt2-tiny");
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {scratch.write(plan), "--data", kTrainingText, "--metrics", metrics});
    const Outcome done = shardwise_run(more);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  };
  run({"--steps", "6"});
  const std::vector<std::string> whole = losses_of(metrics);
  run({"--steps", "3", "--checkpoint-dir", scratch.path("run")});
  run({"--steps", "6", "--resume", scratch.path("run")});
  EXPECT_EQ(losses_of(metrics), whole);
}

TEST(PipelineRun, RefusesACheckpointOfAnotherModelInOneLine) {
  const Scratch scratch;
  const std::string folder = scratch.path("run");
  const Outcome done = shardwise_run({scratch.write(pipeline_plan(2)), "--data", kTrainingText,
                                      "--steps", "2", "--checkpoint-dir", folder});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  Plan other = pipeline_plan(2);
  other.model = shardwise::test::llama(5, 32, 88, 4, 2, 256);
  other.model.model_type = "llama";
  const Outcome refused = shardwise_run(
      {scratch.write(other), "--data", kTrainingText, "--steps", "4", "--resume", folder});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err,
              HasSubstr("/tensors/model.layers.4.input_layernorm.weight: is missing, the plan's "
                        "model has it, and 8 tensors more differ\n"
                        "    resume with a plan of the same model\n"));
}

}  // namespace
}  // namespace shardwise::exec::test
