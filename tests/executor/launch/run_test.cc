#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/cost/memory/memory.h"
#include "planner/lowering/lower.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/report/report_json.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"
#include "tests/support/models.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;

constexpr std::size_t kSteps = 6;

/// Losses of a few steps of the built program.
std::vector<std::string> train(const Plan& plan, std::vector<std::string> arguments = {}) {
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  arguments.insert(arguments.begin(),
                   {scratch.write(plan), "--data", kTrainingText, "--steps", std::to_string(kSteps),
                    "--metrics", metrics, "--learning-rate", "0.01"});
  const Outcome done = shardwise_run(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return losses_of(metrics);
}

TEST(ShardwiseRun, TrainsALlamaWithTheSameBitsForEveryEngineStageAndNumberOfRanks) {
  const std::vector<std::string> alone = train(tiny_plan("shardwise", 0, 1, 4));
  ASSERT_EQ(alone.size(), kSteps);
  EXPECT_GT(std::stod(alone.front().substr(7)), 5);  // ln 256 = 5.5
  EXPECT_LT(std::stod(alone.back().substr(7)), 4.5);
  for (const int zero_stage : {0, 1, 2, 3}) {
    EXPECT_EQ(train(tiny_plan("shardwise", zero_stage, 4, 1)), alone) << zero_stage;
  }
  EXPECT_EQ(train(tiny_plan("shardwise", 3, 2, 2)), alone);
  EXPECT_EQ(train(tiny_plan("megatron_ddp", 1, 4, 1)), alone);
  EXPECT_EQ(train(tiny_plan("megatron_fsdp", 3, 4, 1)), alone);
  EXPECT_EQ(train(tiny_plan("fsdp2", 3, 4, 1)), alone);
  EXPECT_EQ(train(tiny_plan("fsdp1", 3, 4, 1)), alone);
  Plan recomputed = tiny_plan("shardwise", 3, 4, 1);
  recomputed.layout.recompute = Recompute::full;
  EXPECT_EQ(train(recomputed), alone);
}

// `shardwise report` writes the plan into its page.
TEST(ShardwiseRun, TrainsThePlanInAPage) {
  const Plan plan = tiny_plan("shardwise", 3, 2, 1);
  const Scratch scratch;
  const std::string page = scratch.path("report.html");
  std::ofstream(page) << with_page_digest("<!DOCTYPE html>\n<title>a report</title>\n" +
                                          plan_digest_element(plan) + plan_element(plan) +
                                          std::string(kPageDigestElement));
  const std::string metrics = scratch.path("metrics.jsonl");
  const Outcome done =
      shardwise_run({page, "--data", kTrainingText, "--steps", std::to_string(kSteps), "--metrics",
                     metrics, "--learning-rate", "0.01"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(losses_of(metrics), train(plan));
}

TEST(ShardwiseRun, GivesTheSameBitsForAnyNumberOfThreads) {
  const Plan plan = tiny_plan("shardwise", 1, 2, 1);
  EXPECT_EQ(train(plan, {"--threads", "3"}), train(plan, {"--threads", "1"}));
}

TEST(ShardwiseRun, TrainsOnTheTextOfTheCatalogueWhereNoneIsNamed) {
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  const Outcome done = run_program(built("shardwise-run"),
                                   {scratch.write(tiny_plan("shardwise", 3, 2, 2)), "--steps", "20",
                                    "--metrics", metrics, "--learning-rate", "0.01"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::vector<std::string> losses = losses_of(metrics);
  EXPECT_LT(std::stod(losses.back().substr(7)), std::stod(losses.front().substr(7)) - 1.5);
}

// The tokens of the text are some 40 % of its bytes, so 20 steps see more of it.
TEST(ShardwiseRun, TrainsOnTheTokensOfATokenizer) {
  const Scratch scratch;
  Plan plan = tiny_plan("shardwise", 1, 2, 2);
  plan.model = shardwise::test::llama(2, 32, 88, 4, 2, 512);
  plan.model.model_type = "llama";
  const std::string metrics = scratch.path("metrics.jsonl");
  const Outcome done =
      run_program(built("shardwise-run"),
                  {scratch.write(plan), "--steps", "20", "--metrics", metrics, "--learning-rate",
                   "0.01", "--tokenizer", "tests/golden/tokenizers/llama3.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::vector<std::string> losses = losses_of(metrics);
  EXPECT_GT(std::stod(losses.front().substr(7)), 6);  // ln 512 = 6.2
  EXPECT_LT(std::stod(losses.back().substr(7)), 5.8);
}

TEST(ShardwiseRun, GivesProcessesTheBitsOfThreads) {
  for (const int zero_stage : {0, 1, 3}) {
    Plan plan = tiny_plan("shardwise", zero_stage, 4, 2);
    if (zero_stage > 0) plan.job.precision = DType::bf16;
    plan.layout.fp32_gradients = zero_stage != 3;
    const std::vector<std::string> threads = train(plan);
    for (const Started started : ways_of_processes()) {
      const Scratch scratch;
      const std::string metrics = scratch.path("metrics.jsonl");
      const auto [program, arguments] =
          command_of(started, 4,
                     {scratch.write(plan), "--data", kTrainingText, "--steps",
                      std::to_string(kSteps), "--metrics", metrics, "--learning-rate", "0.01"});
      const Outcome done = run_program(program, arguments);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      EXPECT_THAT(done.out, HasSubstr("rank 3 on "));
      EXPECT_EQ(losses_of(metrics), threads) << "ZeRO-" << zero_stage << ", " << program;
    }
  }
}

struct HeldCase {
  int zero_stage = 0;
  DType precision = DType::fp32;
  bool fp32_gradients = true;
  bool fp32_accumulation = false;
  bool replicas = false;  // HFSDP
  bool tied = false;      // the head multiplies with the embedding's table
  Recompute recompute = Recompute::none;
};

// What the planner says a step holds is what the run holds, category by category.
TEST(ShardwiseRun, HoldsTheBytesOfTheLedger) {
  std::vector<HeldCase> all;
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const bool fp32_gradients : {true, false}) {
      all.push_back({zero_stage, DType::bf16, fp32_gradients});
    }
    all.push_back({zero_stage, DType::fp32, true});
    all.push_back({zero_stage, DType::fp32, true, false, false, true});
    if (zero_stage > 0) all.push_back({zero_stage, DType::bf16, false, true});
  }
  all.push_back({1, DType::fp32, true, false, false, false, Recompute::full});
  all.push_back({3, DType::bf16, true, false, false, false, Recompute::full});
  all.push_back({3, DType::fp32, true, false, true});
  all.push_back({3, DType::bf16, false, false, true});
  for (const auto& [zero_stage, precision, fp32_gradients, fp32_accumulation, replicas, tied,
                    recompute] : all) {
    Plan plan = tiny_plan("shardwise", zero_stage, 2, zero_stage < 2 ? 1 : 2);
    if (tied) plan.model = *load_model("llama-tiny");
    plan.job.precision = precision;
    plan.job.reduce_scatter_with_fp32_accumulation = fp32_accumulation;
    plan.layout.fp32_gradients = fp32_gradients;
    plan.layout.recompute = recompute;
    if (replicas) {
      plan.layout.dp_replicate = 2;
      plan.layout.outer_shards_optimizer = true;
      plan.cluster = *with_gpus(*find_cluster("laptop"), 4);
      plan.job.global_batch_size *= 2;
    }
    const Scratch scratch;
    const std::string path = scratch.path("report.json");
    const std::string trace = scratch.path("trace.json");
    const Outcome done =
        run_program(built("shardwise"), {"run", scratch.write(plan), "--data", kTrainingText,
                                         "--steps", "3", "--report", path, "--trace", trace});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Result<StepReport> report = read_report(path);
    ASSERT_TRUE(report) << to_string(report.problems());
    EXPECT_EQ(report->origin, "measured");
    EXPECT_EQ(report->plan_digest, digest(plan));
    // The arena has what is there at once and little beside (ArenaLayout.*).
    EXPECT_GE(report->arena, report->stages.front().peak_allocated());
    EXPECT_LE(report->arena.value(), 11 * report->stages.front().peak_allocated().value() / 10);
    EXPECT_EQ(report->device_used, Bytes(0));  // no GPU
    EXPECT_EQ(report->time.recompute > Seconds(0), recompute == Recompute::full);
    const LayoutMemory predicted =
        layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      const auto phase = static_cast<MemoryPhase>(p);
      EXPECT_EQ(report->stages.front()[phase].bytes, predicted.stages.front()[phase].bytes)
          << "ZeRO-" << zero_stage << ", " << name_of(precision) << ", " << name_of(phase)
          << (tied ? ", tied" : "");
    }
  }
}

/// Ranks of which a trace has operations.
std::set<int> traced_ranks(const std::string& path) {
  std::set<int> ranks;
  const nlohmann::json trace = nlohmann::json::parse(shardwise::test::bytes_of_file(path));
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ranks.insert(event.at("pid").get<int>());
  }
  return ranks;
}

// Trace and report of processes were rank 0's alone.
TEST(ShardwiseRun, RecordsAllRanksHoweverTheyAreStarted) {
  std::vector<Started> ways = ways_of_processes();
  ways.push_back(Started::threads);
  for (const Started started : ways) {
    const Scratch scratch;
    const std::string trace = scratch.path("trace.json");
    const std::string path = scratch.path("report.json");
    const auto [program, words] =
        command_of(started, 3,
                   {scratch.write(tiny_plan("fsdp2", 3, 3, 1)), "--data", kTrainingText, "--steps",
                    "3", "--trace", trace, "--report", path});
    const Outcome done = run_program(program, words);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(traced_ranks(trace), (std::set<int>{0, 1, 2}));
    const Result<StepReport> report = read_report(path);
    ASSERT_TRUE(report && report->timeline);
    EXPECT_EQ(report->measured_ranks, 3);
    EXPECT_GT(report->timeline->critical_path, Seconds(0));
  }
}

// Predicted and measured reports join on the names of operations.
TEST(ShardwiseRun, MeasuresTheOperationsOfTheProgram) {
  const Plan plan = tiny_plan("fsdp2", 3, 2, 2);
  const Scratch scratch;
  const std::string path = scratch.path("report.json");
  const Outcome done = shardwise_run(
      {scratch.write(plan), "--data", kTrainingText, "--steps", "3", "--report", path});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Result<StepReport> report = read_report(path);
  ASSERT_TRUE(report && report->timeline);
  const StepProgram program = lower(plan);
  std::int64_t count = 0;
  for (const OperationTime& operation : report->timeline->operations) count += operation.count;
  EXPECT_EQ(count, std::ssize(program.stages.front().operations));
  for (ProgramOp op : program.stages.front().operations) {
    op.microbatch = -1;
    const std::string name = name_of(program.stages.front(), op);
    EXPECT_TRUE(std::ranges::any_of(report->timeline->operations, [&](const OperationTime& each) {
      return each.name == name;
    })) << name;
  }
  EXPECT_NEAR(report->time.total() / report->step_time, 1, 1e-6);
}

}  // namespace
}  // namespace shardwise::exec::test
