#include "planner/question/asked_fits.h"

#include <gtest/gtest.h>

#include <string>

#include "planner/question/fits_limits.h"

namespace shardwise {
namespace {

AskedFits question(const char* gpu, const char* gpus) {
  AskedFits asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.gpus = gpus;
  asked.gpu = gpu;
  return asked;
}

EstimateAnswer fits_answer(const AskedFits& asked) {
  Result<EstimateAnswer> answer = answer_fits(asked);
  EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
  return *std::move(answer);
}

// Cards that people have, as they write them.
TEST(AskedFits, KnowsCardsByTheNamesInUse) {
  for (const auto& [said, meant] : {std::pair{"RTX 3090", "rtx-3090"},
                                    {"RTX 4090", "rtx-4090"},
                                    {"RTX 5090", "rtx-5090"},
                                    {"A40", "a40"},
                                    {"A6000", "rtx-a6000"},
                                    {"L4", "l4"},
                                    {"L40S", "l40s"},
                                    {"RTX PRO 6000", "rtx-pro-6000"},
                                    {"H200 NVL", "h200-nvl"},
                                    {"H200", "h200"},
                                    {"B300", "b300"},
                                    {"MI355X", "mi355x"}}) {
    const EstimateAnswer answer = fits_answer(question(said, "8"));
    EXPECT_EQ(answer.subject.cluster.gpu.name, meant) << said;
    EXPECT_EQ(answer.layout.world(), 8) << said;
  }
}

// QLoRA trained 33B on one GPU of 24 GB and 65B on one of 48 GB (Dettmers et al.,
// arXiv:2305.14314), with paged optimizers.
TEST(AskedFits, ShardsNothingOnOneGpu) {
  for (const auto& [model, gpu] : {std::pair{"llama-30b", "RTX 3090"}, {"llama-65b", "A6000"}}) {
    AskedFits asked = question(gpu, "1");
    asked.job.model = model;
    asked.job.texts = {{"lora_targets", "all-linear"}, {"lora_rank", "64"},
                       {"base_format", "nf4_double"},  {"main_dtype", "bf16"},
                       {"sequence_length", "512"},     {"global_batch_size", "1"}};
    asked.layout.texts = {{"recompute", "full"}};
    const EstimateAnswer answer = fits_answer(asked);
    EXPECT_EQ(answer.subject.engine.name, "fsdp1") << model;
    EXPECT_EQ(answer.layout.zero_stage, 0) << model;
    EXPECT_NE(answer.report.verdict.fit, Fit::does_not_fit) << model;
  }
}

bool fits_with(const EstimateAnswer& answer, JobSpec job, const Layout& layout) {
  const Subject& s = answer.subject;
  const Evaluation cost = evaluate(s.model, s.cluster, job, s.engine, layout);
  return fit_of(cost, answer.report.verdict.usable) == Fit::fits;
}

TEST(FitsLimits, AreTheLastThatFit) {
  const EstimateAnswer answer = fits_answer(question("h100", "8"));
  const FitsLimits limits =
      fits_limits(answer.subject, answer.layout, answer.report.verdict.usable);
  JobSpec job = answer.subject.job;
  ASSERT_GE(limits.longest_sequence, job.sequence_length);
  job.sequence_length = limits.longest_sequence;
  EXPECT_TRUE(fits_with(answer, job, answer.layout));
  job.sequence_length += 256;
  EXPECT_FALSE(fits_with(answer, job, answer.layout));

  job = answer.subject.job;
  ASSERT_GE(limits.largest_micro_batch, 1);
  Layout layout = answer.layout;
  const std::int64_t passes = job.microbatches(layout.dp(), layout.micro_batch_size);
  for (const std::int32_t more : {0, 1}) {
    layout.micro_batch_size = static_cast<std::int32_t>(limits.largest_micro_batch) + more;
    job.global_batch_size = passes * layout.dp() * layout.micro_batch_size;
    EXPECT_EQ(fits_with(answer, job, layout), more == 0);
  }
  ASSERT_TRUE(limits.least_recompute);
  EXPECT_EQ(limits.least_recompute->layout.recompute, Recompute::none);
}

TEST(FitsLimits, RecomputeNoMoreThanIsNeeded) {
  AskedFits asked = question("h100", "8");
  asked.job.texts["sequence_length"] = "16384";
  const EstimateAnswer answer = fits_answer(asked);
  ASSERT_NE(answer.report.verdict.fit, Fit::fits);
  const FitsLimits limits =
      fits_limits(answer.subject, answer.layout, answer.report.verdict.usable);
  ASSERT_TRUE(limits.least_recompute);
  const Layout& least = limits.least_recompute->layout;
  EXPECT_EQ(least.recompute, Recompute::full);
  EXPECT_TRUE(fits_with(answer, answer.subject.job, least));
  EXPECT_LT(limits.longest_sequence, 16'384);
  // Where even all of it does not fit there is none.
  asked.job.texts["sequence_length"] = "1048576";
  const EstimateAnswer far = fits_answer(asked);
  EXPECT_FALSE(fits_limits(far.subject, far.layout, far.report.verdict.usable).least_recompute);
}

}  // namespace
}  // namespace shardwise
