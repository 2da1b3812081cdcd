// Tensor parallelism, as people start it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
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

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;
using testing::IsEmpty;

/// A small model of the catalogue over so many ranks, two micro-batches of 32 tokens a step.
Plan shared_plan(const char* model, std::int32_t tp, int zero_stage = 0, int dp_shard = 1,
                 std::int32_t pp = 1) {
  Plan plan = tiny_plan("shardwise", zero_stage, dp_shard, 2);
  plan.model = *load_model(model);
  plan.layout.tp = tp;
  plan.layout.pp = pp;
  plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
  return plan;
}

std::vector<std::string> curve_of(const Plan& plan, Started started = Started::threads,
                                  const std::vector<std::string>& more = {}) {
  const Scratch scratch;
  const std::string metrics = scratch.path("metrics.jsonl");
  std::vector<std::string> arguments = {
      scratch.write(plan), "--data", kTrainingText, "--steps", "4", "--metrics", metrics};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto [program, words] =
      command_of(started, static_cast<int>(plan.layout.world()), arguments);
  const Outcome done = run_program(program, words);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return losses_of(metrics);
}

TEST(TensorParallelRun, GivesProcessesTheBitsOfThreads) {
  for (const auto& [pp, spread] : {std::pair(1, false), std::pair(2, false), std::pair(2, true)}) {
    Plan plan = shared_plan("qwen3-tiny", 2, 3, pp == 1 ? 2 : 1, pp);
    plan.layout.sequence_parallel = spread;
    const std::vector<std::string> threads = curve_of(plan);
    ASSERT_EQ(threads.size(), 4U);
    for (const Started started : ways_of_processes()) EXPECT_EQ(curve_of(plan, started), threads);
  }
}

/// Compares the bytes of a run with the ledger's, of every category in every phase.
void expect_ledger(const Plan& plan) {
  const Scratch scratch;
  const std::string path = scratch.path("report.json");
  const Outcome done = shardwise_run(
      {scratch.write(plan), "--data", kTrainingText, "--steps", "3", "--report", path});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Result<StepReport> report = read_report(path);
  ASSERT_TRUE(report) << to_string(report.problems());
  const LayoutMemory predicted =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      const auto phase = static_cast<MemoryPhase>(p);
      const auto category = static_cast<MemoryCategory>(c);
      EXPECT_EQ(report->stages[0][phase][category], predicted.stages[0][phase][category])
          << name_of(phase) << ", " << name_of(category);
    }
  }
}

// Of one rank's: its part of states and activations, and what it has whole.
TEST(TensorParallelRun, HoldsTheBytesOfTheLedger) {
  for (const char* model : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    for (const auto& [zero_stage, dp_shard] : {std::pair(0, 1), std::pair(2, 2), std::pair(3, 2)}) {
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        for (const DType precision : {DType::fp32, DType::bf16}) {
          if (precision == DType::bf16 && recompute == Recompute::full) continue;
          for (const bool spread : {false, true}) {
            SCOPED_TRACE(fmt::format("{}, ZeRO-{}, {}, {}, {}", model, zero_stage,
                                     name_of(recompute), name_of(precision), spread));
            Plan plan = shared_plan(model, 2, zero_stage, dp_shard);
            plan.layout.recompute = recompute;
            plan.layout.sequence_parallel = spread;
            plan.job.precision = precision;
            expect_ledger(plan);
          }
        }
      }
    }
  }
}

TEST(SequenceParallelRun, HoldsTheBytesOfTheLedgerWhereOperationsRunAgain) {
  for (const char* model : {"gpt2-tiny", "llama-tiny"}) {
    for (const std::int32_t tp : {2, 4}) {
      for (const char* operation :
           {"attention_norm", "self_attn.core", "mlp_norm", "mlp.activation"}) {
        SCOPED_TRACE(fmt::format("{}, tp {}, {}", model, tp, operation));
        Plan plan = shared_plan(model, tp);
        plan.layout.sequence_parallel = true;
        plan.job.recompute_operations = {operation};
        expect_ledger(plan);
      }
    }
  }
}

/// A Llama of two blocks with four query heads that share one head of keys and values, or two.
Plan few_heads_plan(std::int64_t kv_heads, std::int32_t tp, int zero_stage, int dp_shard) {
  Plan plan = tiny_plan("shardwise", zero_stage, dp_shard, 4 / dp_shard);
  plan.model = shardwise::test::llama(2, 32, 88, 4, kv_heads, 256);
  plan.model.model_type = "llama";
  plan.layout.tp = tp;
  plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
  return plan;
}

// More ranks than heads of keys and values: several have one, and its bytes.
TEST(TensorParallelRun, HoldsHeadsOfKeysAndValuesOnSeveralRanks) {
  for (const std::int64_t kv_heads : {1, 2}) {
    const TrainedPlan alone = train_plan(few_heads_plan(kv_heads, 1, 0, 1), 4);
    for (const std::int32_t tp : {2, 4}) {
      for (const auto& [zero_stage, dp_shard] :
           {std::pair(0, 1), std::pair(2, 2), std::pair(3, 2)}) {
        SCOPED_TRACE(fmt::format("{} heads, tp {}, ZeRO-{}", kv_heads, tp, zero_stage));
        const Plan plan = few_heads_plan(kv_heads, tp, zero_stage, dp_shard);
        const TrainedPlan trained = train_plan(plan, 4);
        for (std::size_t step = 0; step < alone.losses.size(); ++step) {
          EXPECT_NEAR(trained.losses[step], alone.losses[step], 1e-5 * alone.losses[step]);
          EXPECT_NEAR(trained.norms[step], alone.norms[step], 1e-4 * alone.norms[step]);
        }
        const LayoutMemory predicted =
            layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
        for (std::size_t p = 0; p < kMemoryPhases; ++p) {
          const auto phase = static_cast<MemoryPhase>(p);
          EXPECT_EQ(in_categories(trained.report.stages[0][phase]),
                    in_categories(predicted.stages[0][phase]))
              << name_of(phase);
        }
      }
    }
  }
}

// Of every stage, what a pass keeps and its temporaries as one (in_categories()). The parts of a
// table that arrive from the other stage when passes are over are not in the ledger.
TEST(TensorParallelRun, HoldsTheBytesOfTheLedgerInPipelines) {
  for (const char* model : {"gpt2-tiny", "qwen3-tiny"}) {
    for (const auto& [zero_stage, dp_shard] : {std::pair(0, 1), std::pair(1, 2), std::pair(3, 2)}) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          Plan plan = shared_plan(model, 2, zero_stage, dp_shard, 2);
          plan.layout.sequence_parallel = schedule == PipelineSchedule::gpipe;
          plan.layout.schedule = schedule;
          plan.layout.recompute = recompute;
          plan.job.global_batch_size = 4L * dp_shard;
          const StepReport report = train_plan(plan, 2).report;
          ASSERT_EQ(report.stages.size(), 2U);
          const LayoutMemory predicted =
              layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
          for (std::size_t stage = 0; stage < 2; ++stage) {
            for (std::size_t p = 0; p < kMemoryPhases; ++p) {
              const auto phase = static_cast<MemoryPhase>(p);
              EXPECT_EQ(in_categories(report.stages[stage][phase]),
                        in_categories(predicted.stages[stage][phase]))
                  << fmt::format("{}, stage {}, {}, ZeRO-{}, {}, {}", model, stage,
                                 name_of(schedule), zero_stage, name_of(recompute), name_of(phase));
            }
          }
        }
      }
    }
  }
}

// Each rank reads its parts: the first loss is that of the model on one rank.
TEST(TensorParallelRun, BeginsWithWeightsOfAFile) {
  const Scratch scratch;
  const std::string weights = scratch.path("weights");
  for (const char* model : {"gpt2-tiny", "qwen3-tiny"}) {
    std::filesystem::remove_all(weights);
    (void)curve_of(shared_plan(model, 1), Started::threads, {"--save-weights", weights});
    Scratch other;
    std::vector<std::vector<double>> curves;
    for (const std::int32_t tp : {1, 2}) {
      const std::string metrics = other.path("metrics.jsonl");
      const Outcome done =
          shardwise_run({other.write(shared_plan(model, tp)), "--data", kTrainingText, "--steps",
                         "2", "--metrics", metrics, "--init-from", weights});
      ASSERT_EQ(done.exit_code, 0) << done.err;
      curves.push_back(numbers_of(metrics, "loss"));
    }
    for (std::size_t step = 0; step < 2; ++step) {
      EXPECT_NEAR(curves[1][step], curves[0][step], 1e-5 * curves[0][step]) << model;
    }
  }
}

// A job that changes its mesh is that of one rank, whatever starts its ranks. Weights that its last
// checkpoint has are one file, whoever writes them.
TEST(TensorParallelRun, GoesOnUnderOtherMeshesFromItsCheckpoints) {
  const Scratch scratch;
  const std::string folder = scratch.path("run");
  const std::string metrics = scratch.path("metrics.jsonl");
  const auto plan_of = [](std::int32_t tp, std::int32_t pp, int zero_stage, int dp_shard) {
    Plan plan = shared_plan("gpt2-tiny", tp, zero_stage, dp_shard);
    plan.layout.pp = pp;
    plan.job.global_batch_size = 4;
    plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
    return plan;
  };
  const auto go_on = [&](const Plan& plan, int steps, Started started,
                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {scratch.write(plan),
                                          "--data",
                                          kTrainingText,
                                          "--steps",
                                          std::to_string(steps),
                                          "--metrics",
                                          metrics,
                                          "--checkpoint-dir",
                                          folder,
                                          "--checkpoint-every",
                                          "1",
                                          "--resume",
                                          "auto"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto [program, words] =
        command_of(started, static_cast<int>(plan.layout.world()), arguments);
    const Outcome done = run_program(program, words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  const std::vector<Plan> plans = {plan_of(2, 1, 0, 1), plan_of(1, 1, 0, 1), plan_of(4, 1, 0, 1),
                                   plan_of(1, 1, 3, 2), plan_of(2, 1, 3, 2), plan_of(1, 2, 0, 1),
                                   plan_of(2, 1, 1, 2), plan_of(2, 2, 0, 1), plan_of(2, 2, 3, 2),
                                   plan_of(4, 1, 0, 1), plan_of(2, 4, 0, 1), plan_of(1, 1, 0, 1)};
  const std::vector<Started> ways = ways_of_processes();
  std::string said;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Started started = i % 2 == 0 ? Started::threads : ways[i / 2 % ways.size()];
    said += go_on(plans[i], static_cast<int>(i) + 1, started);
  }
  EXPECT_THAT(said, HasSubstr("written by shardwise ZeRO-3, tp 2, dp_shard 2, dp_replicate 1"));
  EXPECT_THAT(said, HasSubstr("written by shardwise ZeRO-3, tp 2, pp 2, dp_shard 2"));
  const Outcome verified = shardwise_run({"verify", folder});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const std::vector<double> losses = numbers_of(metrics, "loss");
  const std::string alone = scratch.path("alone.jsonl");
  const Outcome whole = shardwise_run({scratch.write(plans[1]), "--data", kTrainingText, "--steps",
                                       std::to_string(plans.size()), "--metrics", alone});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::vector<double> curve = numbers_of(alone, "loss");
  ASSERT_EQ(losses.size(), curve.size());
  for (std::size_t step = 0; step < curve.size(); ++step) {
    EXPECT_NEAR(losses[step], curve[step], 1e-5 * curve[step]) << step;
  }
  std::string first;
  for (const Plan& plan : plans) {
    const std::string to = scratch.path("weights");
    std::filesystem::remove_all(to);
    (void)go_on(plan, static_cast<int>(plans.size()), Started::threads, {"--save-weights", to});
    const std::string bytes = bytes_of_file(to + "/model.safetensors");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << "tp " << plan.layout.tp;
  }
  EXPECT_GT(first.size(), 10'000U);
}

TEST(TensorParallelRun, IsRefusedBeforeAnythingIsAllocatedWhereItCannotBeExecuted) {
  const Scratch scratch;
  const auto refusal = [&](const Plan& plan) {
    const Outcome refused =
        shardwise_run({scratch.write(plan), "--data", kTrainingText, "--steps", "2"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.out, IsEmpty());
    return refused.err;
  };
  Plan plan = shared_plan("qwen3-tiny", 3);
  EXPECT_THAT(refusal(plan),
              HasSubstr("3 neither divides 2 key and value heads nor is a multiple"));
  plan = shared_plan("llama-tiny", 4);
  plan.layout.sequence_parallel = true;
  plan.job.sequence_length = 30;
  EXPECT_THAT(refusal(plan), HasSubstr("/layout/sequence_parallel: "));
  plan = shared_plan("llama-tiny", 2, 0, 1, 2);
  plan.layout.schedule = PipelineSchedule::zb_h1;
  EXPECT_THAT(refusal(plan), HasSubstr("/layout/schedule: zb_h1 cannot be executed\n"
                                       "    one_f_one_b, gpipe, looped_bfs are"));
  plan = shared_plan("llama-tiny", 2);
  plan.engine = *find_engine("megatron_ddp");
  EXPECT_THAT(refusal(plan), HasSubstr("/layout/tp: 2 of engine megatron_ddp cannot be executed\n"
                                       "    tensor parallelism is of engine shardwise"));
}

}  // namespace
}  // namespace shardwise::exec::test
