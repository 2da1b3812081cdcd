#include "planner/cost/memory/memory.h"

#include <gtest/gtest.h>

#include <array>

#include "planner/engines/engines.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

using enum MemoryCategory;

StageMemory stage_of(const std::string& engine, const Layout& layout, const JobSpec& job = {}) {
  return layout_memory(test::llama_3_1_8b(), job, *find_engine(engine), {}, layout).stages.front();
}

// Korthikanti et al. and Megatron-LM's theoretical_memory_usage.py: 18 bytes a parameter.
TEST(StageMemory, HoldsEighteenBytesAParameterWithoutADistributedOptimizer) {
  const Ledger ledger =
      stage_of("megatron_ddp", {.dp_shard = 8})[MemoryPhase::steady_optimizer_step];
  EXPECT_EQ(ledger[weights] + ledger[main_weights] + ledger[gradients] + ledger[optimizer_moments],
            18 * test::kLlama8BParameters);
}

TEST(StageMemory, HoldsSixBytesAndAShareOfTwelveWithADistributedOptimizer) {
  const Ledger ledger = stage_of(
      "megatron_ddp", {.dp_shard = 8, .zero_stage = 1})[MemoryPhase::steady_optimizer_step];
  EXPECT_EQ(ledger[weights] + ledger[gradients], 6 * test::kLlama8BParameters);
  EXPECT_EQ(ledger[main_weights] + ledger[optimizer_moments], 12 * test::kLlama8BParameters / 8);
}

// The main weight's upper half is the bf16 weight, whichever rank's part of it that is.
TEST(StageMemory, HoldsTwoBytesAnElementLessWithRemaindersOfMainWeights) {
  for (const int stage : {0, 1, 2, 3}) {
    const auto states = [&](bool remainders) {
      const Layout layout = {.dp_shard = stage == 0 ? 1 : 8,
                             .zero_stage = static_cast<std::int8_t>(stage),
                             .store_param_remainders = remainders};
      return stage_of("shardwise", layout)[MemoryPhase::steady_optimizer_step];
    };
    const Ledger whole = states(false);
    const Ledger halves = states(true);
    EXPECT_EQ(halves[main_weights] * 2, whole[main_weights]) << stage;
    EXPECT_EQ(whole.total() - halves.total(),
              Bytes(2 * test::kLlama8BParameters / (stage == 0 ? 1 : 8)))
        << stage;
    if (stage > 0) continue;
    EXPECT_EQ(
        halves[weights] + halves[main_weights] + halves[gradients] + halves[optimizer_moments],
        16 * test::kLlama8BParameters);
  }
}

TEST(StageMemory, HoldsAShareOfSixteenBytesUnderFsdp2) {
  const Ledger ledger =
      stage_of("fsdp2", {.dp_shard = 8, .zero_stage = 3})[MemoryPhase::steady_optimizer_step];
  EXPECT_EQ(ledger[weights] + ledger[main_weights] + ledger[gradients] + ledger[optimizer_moments],
            16 * test::kLlama8BParameters / 8);
}

// deepseek-ai/DualPipe:README.md, "Parameter": 2 x. Both copies are trained, so their gradients and
// optimizer states are there twice as well.
TEST(StageMemory, HoldsTheBlocksOfBothDirectionsUnderDualPipe) {
  const auto blocks = [](PipelineSchedule schedule) {
    JobSpec job;
    job.global_batch_size = 64;
    const Ledger step = layout_memory(test::llama_3_1_8b(), job, *find_engine("shardwise"), {},
                                      {.pp = 4, .schedule = schedule})
                            .stages[1][MemoryPhase::steady_optimizer_step];
    return std::array{step[weights], step[main_weights], step[gradients], step[optimizer_moments]};
  };
  const auto once = blocks(PipelineSchedule::dualpipe_v);
  const auto twice = blocks(PipelineSchedule::dualpipe);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
  EXPECT_EQ(once[0], 16 * std::int64_t{218'112'000});
}

// A head that shares the token table of the first stage has a copy of it, which is trained or not
// like the table: as many weights as a head of its own.
TEST(StageMemory, HoldsACopyOfATiedTableOnTheLastStageWhetherTrainedOrFrozen) {
  const ModelSpec own = test::llama(4, 256, 512, 4, 4, 1024);
  ModelSpec tied = own;
  tied.tie_word_embeddings = true;
  for (LayerSpec& kind : tied.kinds) {
    if (kind.role == LayerRole::head) kind.parameters.pop_back();
  }
  for (const bool frozen : {false, true}) {
    JobSpec job;
    job.frozen_base = frozen;
    for (const char* engine : {"shardwise", "megatron_ddp"}) {
      const auto weights_of_last = [&](const ModelSpec& model) {
        return layout_memory(model, job, *find_engine(engine), {}, {.pp = 2})
            .stages.back()[MemoryPhase::steady_optimizer_step][weights];
      };
      EXPECT_EQ(weights_of_last(tied), weights_of_last(own)) << engine << frozen;
    }
  }
}

TEST(StageMemory, PeaksInForwardAndBackwardRatherThanAfterInit) {
  const StageMemory memory =
      stage_of("fsdp2", {.dp_shard = 8, .micro_batch_size = 2, .zero_stage = 3});
  EXPECT_GT(memory[MemoryPhase::first_forward_backward].total(),
            memory[MemoryPhase::after_init].total());
  EXPECT_GT(memory[MemoryPhase::steady_forward_backward].total(),
            memory[MemoryPhase::first_forward_backward].total());
}

// The search asks for the peaks of millions of stages and has no use for their ledgers.
TEST(StagePeaks, AreThoseOfTheLedgers) {
  const ModelSpec model = test::llama_3_1_8b();
  JobSpec job;
  job.global_batch_size = 64;
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    RuntimeMemory runtime = engine.runtime;
    runtime.context = 500'000'000;
    runtime.communicator = 300'000'000;
    runtime.slack_share = runtime.slack_least_share = 0.02;
    runtime.slack_most_share = 0.2;
    runtime.doubt_share = 0.03;
    const MemoryRules rules = memory_rules(job, engine, runtime);
    for (const int stage : engine.zero_stages) {
      Layout layout = {.pp = 4, .dp_shard = 4, .micro_batch_size = 2};
      layout.zero_stage = static_cast<std::int8_t>(stage);
      layout.recompute = stage % 2 == 0 ? Recompute::none : Recompute::full;
      const std::vector<LayerMemory> layers = layer_memories(model, job, engine, layout);
      const std::vector<StageLayers> stages = assign_stages(model, layout);
      for (std::int32_t s = 0; s < layout.pp; ++s) {
        SCOPED_TRACE(name + ", ZeRO stage " + std::to_string(stage));
        const StageParts parts = stage_parts(model, layers, stages[static_cast<std::size_t>(s)]);
        const StageContext context = {&rules, &layout, s, 8};
        const StageMemory memory = stage_memory(parts, context);
        const StagePeaks peaks = stage_peaks(parts, context);
        EXPECT_EQ(peaks.point, memory.peak_total());
        EXPECT_EQ(peaks.upper, memory.peak_total() + memory_doubt(memory, parts, context).total());
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
