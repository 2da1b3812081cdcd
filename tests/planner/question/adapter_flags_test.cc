#include "planner/question/adapter_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(AdapterFlags, KeepTheModelInFourBits) {
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
  const double bare = seconds({{"frozen_base", "true"}});
  const double two = seconds({{"lora_targets", "q_proj,v_proj"}});
  const double all = seconds({{"lora_targets", "all-linear"}});
  const double packed = seconds({{"lora_targets", "all-linear"}, {"base_format", "nf4"}});
  EXPECT_LT(bare, two);
  EXPECT_LT(two, all);
  EXPECT_LT(all, packed);
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
