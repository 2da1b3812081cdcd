#include <gtest/gtest.h>

#include "planner/lowering/data_parallel/buckets.h"
#include "planner/model/hf_config.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

// Megatron-Core's own DistributedDataParallel, built on tensors without memory with Transformer
// Engine's order of parameters (Megatron-LM@d98e8a64, core 0.20): the buckets of a stage.

struct Degrees {
  std::int32_t dp = 8;
  std::int32_t tp = 1;
  std::int32_t pp = 1;
  std::int32_t stage = 0;
};

std::vector<std::int64_t> megatron_buckets(ModelSpec model, const Degrees& degrees) {
  Layout layout;
  layout.dp_shard = degrees.dp;
  layout.tp = degrees.tp;
  layout.pp = degrees.pp;
  layout.zero_stage = 1;
  Plan plan = small_plan(megatron_ddp(), layout, 1);
  plan.model = std::move(model);
  const LoweringContext context = lowering_context(plan, Granularity::layer, false);
  std::vector<std::int64_t> padded;
  for (const Bucket& each : buckets_of(context, degrees.stage)) padded.push_back(each.padded);
  return padded;
}

ModelSpec llama_13b() { return llama(40, 5120, 13'824, 40, 40, 32'000); }
ModelSpec qwen_72b_shape() { return llama(80, 8192, 29'568, 64, 8, 152'064); }

TEST(MegatronBuckets, OfLlama8bAreFc2ThenFc1ThenTheAttention) {
  constexpr std::int64_t kNorm = 4096;
  constexpr std::int64_t kTable = std::int64_t{128'256} * 4096;
  constexpr std::int64_t kFc2 = std::int64_t{4096} * 14'336;
  constexpr std::int64_t kFc1 = 2 * kFc2;
  constexpr std::int64_t kQkv = std::int64_t{4096} * (4096 + 2 * 1024);
  constexpr std::int64_t kProj = std::int64_t{4096} * 4096;
  std::vector<std::int64_t> expected = {kTable};
  for (int block = 0; block < 32; ++block) {
    expected.push_back(kFc2 + (block == 0 ? kNorm : 0));  // the final norm
    expected.push_back(kFc1);
    expected.push_back(kNorm + kQkv + kNorm + kProj);
  }
  expected.push_back(kTable);
  EXPECT_EQ(expected.size(), 98U);
  EXPECT_EQ(megatron_buckets(llama_3_1_8b(), {.dp = 8}), expected);
}

TEST(MegatronBuckets, OfLlama8bOverEightTensorRanksSpanBlocks) {
  std::vector<std::int64_t> expected = {66'060'288, 49'295'360};
  expected.insert(expected.end(), 15, 54'542'336);
  expected.push_back(71'311'360);
  EXPECT_EQ(megatron_buckets(llama_3_1_8b(), {.dp = 8, .tp = 8}), expected);
}

TEST(MegatronBuckets, OfATableThatStagesShareAreApart) {
  constexpr std::int64_t kTable = std::int64_t{128'256} * 2048;
  const ModelSpec tied = *load_model("llama-3.2-1b");
  ASSERT_TRUE(tied.tie_word_embeddings);
  std::vector<std::int64_t> expected = {50'331'648};
  expected.insert(expected.end(), 7, 60'821'504);
  expected.insert(expected.end(), {10'489'856, kTable});
  EXPECT_EQ(megatron_buckets(tied, {.dp = 8, .pp = 2, .stage = 0}), expected);
  expected = {kTable, 486'574'080};
  EXPECT_EQ(megatron_buckets(tied, {.dp = 8, .pp = 2, .stage = 1}), expected);
  EXPECT_EQ(megatron_buckets(tied, {.dp = 64}).size(), 13U);
}

TEST(MegatronBuckets, AreAsManyAsMegatrons) {
  EXPECT_EQ(megatron_buckets(llama_3_1_8b(), {.dp = 48}).size(), 66U);
  EXPECT_EQ(megatron_buckets(llama_3_1_8b(), {.dp = 64}).size(), 65U);
  EXPECT_EQ(megatron_buckets(llama_3_1_8b(), {.dp = 8, .tp = 2}).size(), 65U);
  EXPECT_EQ(megatron_buckets(llama_13b(), {.dp = 8}).size(), 122U);
  EXPECT_EQ(megatron_buckets(qwen_72b_shape(), {.dp = 64, .tp = 8}).size(), 82U);
}

}  // namespace
}  // namespace shardwise::test
