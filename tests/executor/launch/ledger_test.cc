// The ledger of any engine, priced with our kernels (--kernels planned), against what a run holds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/report/report_json.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using enum MemoryCategory;
using enum MemoryPhase;

constexpr DType kPrecisions[] = {DType::fp32, DType::bf16};

struct HeldAndSaid {
  StageMemory predicted;
  StageMemory measured;
};

HeldAndSaid run_and_report(const char* engine, int zero_stage, DType precision) {
  Plan plan = tiny_plan(engine, zero_stage, 2, 1);
  plan.job.precision = precision;
  plan.job.kernels = Kernels::planned;
  plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
  const Scratch scratch;
  const std::string path = scratch.path("report.json");
  const Outcome done = shardwise_run(
      {scratch.write(plan), "--data", kTrainingText, "--steps", "3", "--report", path});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const Result<StepReport> report = read_report(path);
  EXPECT_TRUE(report) << to_string(report.problems());
  const LayoutMemory predicted =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
  return {predicted.stages.front(), report->stages.front()};
}

/// "megatron_ddp ZeRO-1 bf16, steady_optimizer_step gradients" of each category that differs.
std::string differences(const char* engine, int zero_stage, DType precision) {
  const HeldAndSaid held = run_and_report(engine, zero_stage, precision);
  std::string text;
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      const std::int64_t predicted = held.predicted.phases[p].bytes[c];
      const std::int64_t measured = held.measured.phases[p].bytes[c];
      if (predicted == measured) continue;
      text +=
          fmt::format("{} ZeRO-{} {}, {} {}: {} is {}\n", engine, zero_stage, name_of(precision),
                      kMemoryPhaseNames[p], kMemoryCategoryNames[c], predicted, measured);
    }
  }
  return text;
}

// Nothing that is there depends on when communication ends.
TEST(Ledger, IsTheRunsToTheByteWhereEnginesKeepParametersAndGradientsInBuffers) {
  for (const DType precision : kPrecisions) {
    for (const int zero_stage : {0, 1}) {
      EXPECT_EQ(differences("megatron_ddp", zero_stage, precision), "");
      EXPECT_EQ(differences("megatron_fsdp", zero_stage, precision), "");
    }
  }
}

// Units come and go with their communication: the ledger has the most that there may be.
TEST(Ledger, HasTheStatesOfARunToTheByteAndNoLessThanItsPasses) {
  for (const DType precision : kPrecisions) {
    for (const auto& [engine, zero_stage] :
         {std::pair{"megatron_fsdp", 2}, {"megatron_fsdp", 3}, {"fsdp2", 3}, {"fsdp1", 3}}) {
      const HeldAndSaid held = run_and_report(engine, zero_stage, precision);
      const std::string name = fmt::format("{} ZeRO-{}", engine, zero_stage);
      for (std::size_t p = 0; p < kMemoryPhases; ++p) {
        const Ledger& predicted = held.predicted.phases[p];
        const Ledger& measured = held.measured.phases[p];
        for (const MemoryCategory state : {weights, main_weights, optimizer_moments}) {
          EXPECT_EQ(measured[state], predicted[state]) << name << " " << name_of(state);
        }
      }
      for (const MemoryPhase step : {first_optimizer_step, steady_optimizer_step}) {
        EXPECT_EQ(held.measured[step].bytes, held.predicted[step].bytes) << name;
      }
      // FSDP1 copies gradients on a stream of its own, which may lag behind.
      if (std::string(engine) == "fsdp1") continue;
      for (const MemoryPhase passes : {first_forward_backward, steady_forward_backward}) {
        EXPECT_LE(held.measured[passes].total(), held.predicted[passes].total()) << name;
      }
    }
  }
}

// What PyTorch's layers keep is not what ours do.
TEST(Ledger, IsSaidToBeAnotherWhereThePlanPricesOthersKernels) {
  const Scratch scratch;
  Plan plan = tiny_plan("fsdp2", 3, 2, 1);
  const auto said = [&] {
    return run_program(built("shardwise-run"),
                       {scratch.write(plan), "--data", kTrainingText, "--steps", "1"})
        .out;
  };
  EXPECT_THAT(said(), testing::HasSubstr("plan with --kernels planned to compare"));
  plan.job.kernels = Kernels::planned;
  EXPECT_THAT(said(), testing::Not(testing::HasSubstr("--kernels")));
}

}  // namespace
}  // namespace shardwise::exec::test
