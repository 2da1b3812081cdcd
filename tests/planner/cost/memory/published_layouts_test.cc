// Layouts that large models were trained with, against the memory they had.
#include <gtest/gtest.h>

#include <string>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/recompute_modules.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

/// DeepSeek-V3 (arXiv:2412.19437), section 3.2.3 and 3.3.2: RMSNorms, the up-projections of latent
/// attention and the outputs of SwiGLU run again.
JobSpec deepseek_recompute(const ModelSpec& model) {
  JobSpec job;
  job.sequence_length = test::kDefaultTokens;
  for (const char* module : {"layernorm", "mla_up_proj", "moe_act"}) {
    for (const std::string& name : operations_of_module(model, module)) {
      job.recompute_operations.push_back(name);
    }
  }
  for (const char* name : {"mlp.shared.activation", "self_attn.q_a_norm", "self_attn.kv_a_norm"}) {
    job.recompute_operations.emplace_back(name);
  }
  return job;
}

std::int64_t kept_by_block(const ModelSpec& model, const JobSpec& job) {
  for (const LayerSpec& layer : model.kinds) {
    if (layer.name != "block") continue;
    return layer_memory(model, layer, job, *find_engine("shardwise"), {.ep = 64}).saved;
  }
  return 0;
}

// By hand, of 4,096 tokens in 16 bits: the stream before both norms, the latents of queries and
// keys, the output of attention with its fp32 statistics, the routed tokens, and gate and up of 8
// routed experts and a shared one. (F7)
TEST(PublishedLayouts, OfDeepseekV3KeepInSixteenBitsWhatThePaperKeeps) {
  const Result<ModelSpec> model = load_model("deepseek-v3");
  ASSERT_TRUE(model.ok());
  constexpr std::int64_t kStream = test::kDefaultTokens * 7168 * 2;
  constexpr std::int64_t kLatents = test::kDefaultTokens * (1536 + 512 + 64) * 2;
  constexpr std::int64_t kAttention = test::kDefaultTokens * 128 * (128 * 2 + 4);
  constexpr std::int64_t kRouted = 8 * kStream;
  constexpr std::int64_t kGateAndUp = (8 + 1) * test::kDefaultTokens * 2 * 2048 * 2;
  constexpr std::int64_t kByHand = 2 * kStream + kLatents + kAttention + kRouted + kGateAndUp;
  const std::int64_t kept = kept_by_block(*model, deepseek_recompute(*model));
  // Choices and probabilities of the router are small besides.
  EXPECT_GE(kept, kByHand);
  EXPECT_LE(kept, kByHand + kByHand / 50);
}

// Section 3.3.2: inputs of linear layers and of SwiGLU wait in fp8, that of the projection after
// attention in E5M6, each with a scale of 4 bytes for 128 elements. By hand: routed tokens and gate
// and up of 8 routed experts and a shared one; attention's output. (F7)
TEST(PublishedLayouts, OfDeepseekV3KeepInEightBitsWhatThePaperKeeps) {
  const Result<ModelSpec> model = load_model("deepseek-v3");
  ASSERT_TRUE(model.ok());
  JobSpec job = deepseek_recompute(*model);
  const std::int64_t wide = kept_by_block(*model, job);
  job.saved_linear_inputs = job.saved_activation_inputs = SavedFormat::fp8;
  job.saved_attention_outputs = SavedFormat::e5m6;
  constexpr std::int64_t kInEight =
      8 * test::kDefaultTokens * 7168 + (8 + 1) * test::kDefaultTokens * 2 * 2048;
  constexpr std::int64_t kInTwelve = test::kDefaultTokens * 128 * 128;
  constexpr std::int64_t kLess = kInEight - kInEight / 32 + kInTwelve / 2 - kInTwelve / 32;
  EXPECT_EQ(wide - kept_by_block(*model, job), kLess);
}

}  // namespace
}  // namespace shardwise
