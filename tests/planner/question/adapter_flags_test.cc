#include "planner/question/adapter_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "planner/question/answer_estimate.h"
#include "planner/question/command_of_plan.h"
#include "planner/spec/report/memory_numbers.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

AskedEstimate adapted(std::map<std::string, std::string> texts, const char* engine = "fsdp1") {
  AskedEstimate asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.cluster = "dgx-a100";
  asked.job.gpus = "1";
  asked.job.engine = engine;
  asked.job.texts = std::move(texts);
  asked.job.texts["global_batch_size"] = "4";
  if (asked.job.engine == "fsdp1") asked.layout.texts["zero_stage"] = "0";
  return asked;
}

Diagnostic problem_of(std::map<std::string, std::string> texts, const char* engine = "fsdp1") {
  const Result<EstimateAnswer> answer = answer_estimate(adapted(std::move(texts), engine));
  EXPECT_FALSE(answer.ok());
  return answer.ok() ? Diagnostic() : answer.problems().front();
}

// 41,943,040 elements are trained: fp32 weights and two moments.
TEST(AdapterFlags, TrainTheMatricesThatTheyName) {
  const Result<EstimateAnswer> answer =
      answer_estimate(adapted({{"lora_targets", "all-linear"}, {"lora_rank", "16"}}));
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const Ledger& ledger = answer->report.stages[0][MemoryPhase::steady_optimizer_step];
  EXPECT_EQ(ledger[MemoryCategory::main_weights], 4 * 41'943'040);
  EXPECT_EQ(ledger[MemoryCategory::optimizer_moments], 8 * 41'943'040);
  EXPECT_TRUE(answer->subject.job.frozen_base);
}

// huggingface/peft: LoraConfig() of a Llama has rank 8 on q_proj and v_proj.
TEST(AdapterFlags, ArePeftsOwnWhereNobodyNamesAny) {
  const auto said = [](std::map<std::string, std::string> texts, const char* id,
                       const char* engine = "fsdp1") {
    const Result<EstimateAnswer> answer = answer_estimate(adapted(std::move(texts), engine));
    EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
    return std::ranges::any_of(answer->said, [&](const Assumption& each) { return each.id == id; });
  };
  EXPECT_TRUE(said({{"frozen_base", "true"}}, "adapters.wide"));
  EXPECT_TRUE(said({{"lora_targets", "none"}}, "adapters.unnamed"));
  EXPECT_TRUE(said({{"frozen_base", "true"}}, "adapters.unnamed", "megatron_ddp"));
  EXPECT_FALSE(said({{"lora_targets", "q_proj"}}, "adapters.unnamed"));
  EXPECT_TRUE(said({{"lora_targets", "q_proj"}}, "adapters.wide"));
  EXPECT_FALSE(said({{"lora_targets", "q_proj"}, {"main_dtype", "bf16"}}, "adapters.wide"));
}

TEST(AdapterFlags, KeepTheModelInFewerBits) {
  const auto weights = [](const char* format) {
    const Result<EstimateAnswer> answer =
        answer_estimate(adapted({{"lora_targets", "all-linear"}, {"base_format", format}}));
    EXPECT_TRUE(answer.ok());
    return answer->report.stages[0][MemoryPhase::after_init][MemoryCategory::weights];
  };
  // Linear layers have 6,979,321,856 elements, in 224 matrices; the rest 1,050,939,392 in fp32.
  constexpr std::int64_t kRest = std::int64_t{4} * 1'050'939'392;
  constexpr std::int64_t kLinear = 6'979'321'856;
  EXPECT_EQ(weights("nf4"), kRest + kLinear / 2 + 4 * kLinear / 64 + 224 * 64);
  // Rows of a block's matrices: 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096.
  EXPECT_EQ(weights("int8"), kRest + kLinear + std::int64_t{4} * 32 * 43'008);
  // Tables, and scales of scales, are rounded up to 8 bytes.
  EXPECT_NEAR(static_cast<double>(weights("nf4_double")),
              static_cast<double>(kRest + kLinear / 2 + kLinear / 64 + 4 * kLinear / 64 / 256 +
                                  std::int64_t{224} * (64 + 1024 + 4)),
              224 * 5 * 8);
}

TEST(AdapterFlags, MakeTheProductsTakeLonger) {
  const auto seconds = [](std::map<std::string, std::string> texts) {
    const Result<EstimateAnswer> answer = answer_estimate(adapted(std::move(texts)));
    EXPECT_TRUE(answer.ok());
    return answer->report.step_time.value();
  };
  const double bare = seconds({{"lora_targets", "none"}});
  const double two = seconds({{"lora_targets", "q_proj,v_proj"}});
  const double all = seconds({{"lora_targets", "all-linear"}});
  const double packed = seconds({{"lora_targets", "all-linear"}, {"base_format", "nf4"}});
  EXPECT_LT(all, seconds({{"lora_targets", "all-linear"}, {"base_format", "int8"}}));
  EXPECT_EQ(two, seconds({{"frozen_base", "true"}}));
  EXPECT_LT(bare, two);
  EXPECT_LT(two, all);
  EXPECT_LT(all, packed);
}

// QLoRA of 33B on one GPU of 24 GB and of 65B on one of 48 GB, with paged optimizers, as its
// authors trained them (Dettmers et al., arXiv:2305.14314).
TEST(AdapterFlags, FitOneGpuWhereQloraTrainedOnIt) {
  const auto verdict = [](const char* model, const char* cluster,
                          std::map<std::string, std::string> more) {
    more.merge(std::map<std::string, std::string>{{"lora_targets", "all-linear"},
                                                  {"lora_rank", "64"},
                                                  {"base_format", "nf4_double"},
                                                  {"sequence_length", "512"}});
    AskedEstimate asked = adapted(std::move(more));
    asked.job.model = model;
    asked.job.cluster = cluster;
    asked.layout.texts["recompute"] = "full";
    const Result<EstimateAnswer> answer = answer_estimate(asked);
    EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
    return answer.ok() ? answer->report.verdict : Verdict();
  };
  for (const auto& [model, cluster] :
       {std::pair{"llama-30b", "rtx-4090-x8"}, {"llama-65b", "rtx-a6000-x8"}}) {
    const Verdict usual = verdict(model, cluster, {});
    EXPECT_NE(usual.fit, Fit::does_not_fit) << model;
    EXPECT_GT(usual.host, Bytes(0)) << model;
    const Verdict narrow = verdict(model, cluster, {{"main_dtype", "bf16"}});
    EXPECT_LT(narrow.needed, usual.needed) << model;
    EXPECT_EQ(verdict(model, cluster, {{"adamw", "fused"}}).fit, Fit::does_not_fit) << model;
  }
}

// tloen/alpaca-lora, issue 121: in 8 bits 7B takes 8 to 10 GB and 13B 16 to 17 GB on one RTX 4090,
// with the script's own batches, of 4 sequences of 256 tokens.
TEST(AdapterFlags, FitOneGpuInEightBitsWhereAlpacaLoraTrainedOnIt) {
  const auto report_of = [](const char* model, const char* format) {
    AskedEstimate asked = adapted({{"lora_targets", "q_proj,v_proj"},
                                   {"base_format", format},
                                   {"precision", "fp16"},
                                   {"loss", "materialised"},
                                   {"adamw", "foreach"},
                                   {"sequence_length", "256"}});
    if (*format == '\0') asked.job.texts.erase("base_format");
    asked.job.model = model;
    asked.job.cluster = "rtx-4090-x8";
    asked.layout.texts["recompute"] = "full";
    asked.layout.texts["micro_batch_size"] = "4";
    const Result<EstimateAnswer> answer = answer_estimate(asked);
    EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
    return answer.ok() ? answer->report : StepReport();
  };
  constexpr double kGib = 1 << 30;
  const auto held = [&](const char* model) {
    return static_cast<double>(memory_numbers(report_of(model, "int8")).nvidia_smi.value()) / kGib;
  };
  EXPECT_GT(held("llama-7b"), 8);
  EXPECT_LT(held("llama-7b"), 1.1 * 10);
  EXPECT_GT(held("llama-13b"), 16);
  EXPECT_LT(held("llama-13b"), 1.1 * 17);
  EXPECT_EQ(report_of("llama-13b", "int8").verdict.fit, Fit::fits);
  EXPECT_EQ(report_of("llama-13b", "").verdict.fit, Fit::does_not_fit);
}

// 32 blocks of 4,096 hidden: checkpoints of a model in 4 bits keep fp32, and two more such tensors
// are there at most.
TEST(AdapterFlags, KeepInputsOfLayersInFp32BesideNormsInFp32) {
  AskedEstimate asked =
      adapted({{"lora_targets", "q_proj"}, {"base_format", "nf4"}, {"sequence_length", "512"}});
  asked.layout.texts["recompute"] = "full";
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const Ledger& ledger = answer->report.stages[0][MemoryPhase::steady_forward_backward];
  constexpr std::int64_t kInput = std::int64_t{4} * 512 * 4096;
  EXPECT_GE(ledger[MemoryCategory::activations], 32 * kInput);
  EXPECT_LE(ledger[MemoryCategory::activations], 34 * kInput);
}

// Adapters of 41,943,040 elements in bf16: nothing is wider than that but the moments.
TEST(AdapterFlags, LeaveEmbeddingAndHeadNarrowBesideNarrowAdapters) {
  const Result<EstimateAnswer> answer = answer_estimate(adapted({{"lora_targets", "all-linear"},
                                                                 {"lora_rank", "16"},
                                                                 {"base_format", "nf4"},
                                                                 {"main_dtype", "bf16"}}));
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const Ledger& ledger = answer->report.stages[0][MemoryPhase::steady_optimizer_step];
  EXPECT_EQ(ledger[MemoryCategory::main_weights], 2 * 41'943'040);
  constexpr std::int64_t kLinear = 6'979'321'856;
  EXPECT_EQ(ledger[MemoryCategory::weights],
            std::int64_t{2} * 1'050'939'392 + kLinear / 2 + 4 * kLinear / 64 + 224 * 64);
}

TEST(AdapterFlags, ThatCannotBeSayWhatCan) {
  EXPECT_THAT(to_string(problem_of({{"lora_targets", "c_attn"}})),
              HasSubstr("--lora-targets: llama-3.1-8b has no linear layer 'c_attn'\n"
                        "    it has down_proj, gate_proj, k_proj, lm_head, o_proj, q_proj"));
  EXPECT_EQ(problem_of({{"lora_rank", "8"}}).path, "--lora-rank");
  EXPECT_EQ(problem_of({{"base_format", "nf4"}}).path, "--base-format");
  EXPECT_EQ(problem_of({{"lora_targets", "q_proj"}, {"lora_rank", "0"}}).path, "--lora-rank");
  EXPECT_EQ(problem_of({{"lora_targets", "q_proj"}, {"base_format", "int4"}}).path,
            "--base-format");
  EXPECT_EQ(problem_of({{"lora_targets", "q_proj"}, {"frozen_base", "false"}}).path,
            "--lora-targets");
  EXPECT_EQ(problem_of({{"lora_targets", "q_proj"}, {"base_format", "nf4"}}, "megatron_ddp").path,
            "--base-format");
}

TEST(AdapterFlags, AreInTheCommandOfAPlan) {
  const Result<EstimateAnswer> answer =
      answer_estimate(adapted({{"lora_targets", "q_proj,k_proj,down_proj"},
                               {"lora_rank", "32"},
                               {"base_format", "nf4_double"}}));
  ASSERT_TRUE(answer.ok());
  const Subject& s = answer->subject;
  const Plan plan = {s.model, s.cluster, s.job, s.engine, answer->layout};
  const Result<AskedEstimate> asked = asked_of(plan);
  ASSERT_TRUE(asked.ok()) << to_string(asked.problems());
  const Result<EstimateAnswer> again = answer_estimate(*asked);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->subject.model, s.model);
  EXPECT_EQ(again->report.verdict.needed, answer->report.verdict.needed);
}

}  // namespace
}  // namespace shardwise
