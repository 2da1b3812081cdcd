// Layouts that large models were trained with, against the memory they had.
#include <gtest/gtest.h>

#include <string>

#include "planner/cost/layer_memory.h"
#include "planner/cost/recompute_modules.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

// DeepSeek-V3 (arXiv:2412.19437), section 3.2.3 and 3.3.2: RMSNorms, the up-projections of latent
// attention and the outputs of SwiGLU run again. By hand, of 4,096 tokens in 16 bits: the stream
// before both norms, the latents of queries and keys, the output of attention with its fp32
// statistics, the routed tokens, and gate and up of 8 routed experts and a shared one.
// docs/memory.md says what 8 bits would take off. (F7)
TEST(PublishedLayouts, OfDeepseekV3KeepInSixteenBitsWhatThePaperKeeps) {
  const Result<ModelSpec> model = load_model("deepseek-v3");
  ASSERT_TRUE(model.ok());
  JobSpec job;
  job.sequence_length = 4096;
  for (const char* module : {"layernorm", "mla_up_proj", "moe_act"}) {
    for (const std::string& name : operations_of_module(*model, module)) {
      job.recompute_operations.push_back(name);
    }
  }
  for (const char* name : {"mlp.shared.activation", "self_attn.q_a_norm", "self_attn.kv_a_norm"}) {
    job.recompute_operations.emplace_back(name);
  }
  constexpr std::int64_t kTokens = 4096;
  constexpr std::int64_t kStream = kTokens * 7168 * 2;
  constexpr std::int64_t kLatents = kTokens * (1536 + 512 + 64) * 2;
  constexpr std::int64_t kAttention = kTokens * 128 * (128 * 2 + 4);
  constexpr std::int64_t kRouted = 8 * kStream;
  constexpr std::int64_t kGateAndUp = (8 + 1) * kTokens * 2 * 2048 * 2;
  constexpr std::int64_t kByHand = 2 * kStream + kLatents + kAttention + kRouted + kGateAndUp;
  for (const LayerSpec& layer : model->kinds) {
    if (layer.name != "block") continue;
    const std::int64_t kept =
        layer_memory(*model, layer, job, *find_engine("shardwise"), {.ep = 64}).saved;
    // Choices and probabilities of the router are small besides.
    EXPECT_GE(kept, kByHand);
    EXPECT_LE(kept, kByHand + kByHand / 50);
  }
}

}  // namespace
}  // namespace shardwise
