// Megatron-Core's recompute modules: what a layer no longer keeps, derived by hand.
#include "planner/cost/layer/recompute_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/cost/layer/layer_memory.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t kBf16 = 2;

/// Bytes that the layer `kind` keeps less when the operations of `modules` run again.
std::int64_t saved_by_operations(const ModelSpec& model, const std::string& kind,
                                 const std::vector<std::string>& operations) {
  JobSpec job;
  job.sequence_length = test::kDefaultTokens;
  const auto kept = [&](const JobSpec& asked) {
    std::int64_t sum = 0;
    for (const LayerSpec& layer : model.kinds) {
      if (layer.name != kind) continue;
      sum += layer_memory(model, layer, asked, *find_engine("megatron_ddp"), {}).saved;
    }
    return sum;
  };
  JobSpec again = job;
  again.recompute_operations = operations;
  return kept(job) - kept(again);
}

std::int64_t saved_by(const ModelSpec& model, const std::string& kind, const std::string& module) {
  return saved_by_operations(model, kind, operations_of_module(model, module));
}

// The input of the queries' product and that of gate and up: [tokens, hidden] in bf16 each; and
// the fp32 statistic a row that a norm keeps.
TEST(RecomputeModules, LayernormDropsBothOutputs) {
  const ModelSpec llama = *load_model("llama-3.1-8b");
  EXPECT_EQ(saved_by(llama, "block", "layernorm"), 2 * test::kDefaultTokens * (4096 * kBf16 + 4));
}

// Gate and up before the activation, and their product after it, the input of down: 3 x [tokens,
// 14336]. The norm's output stays: the part that runs again starts from it.
TEST(RecomputeModules, MlpDropsWhatIsInside) {
  const ModelSpec llama = *load_model("llama-3.1-8b");
  EXPECT_EQ(saved_by(llama, "block", "mlp"), 3 * test::kDefaultTokens * 14336 * kBf16);
}

// DeepSeek-V3: 8 experts a token, 2048 wide. moe_act drops the input of down, and the fp32
// probability that weights each row.
TEST(RecomputeModules, MoeActDropsTheInputOfDown) {
  const ModelSpec deepseek = *load_model("deepseek-v3");
  EXPECT_EQ(saved_by(deepseek, "block", "moe_act"), 8 * test::kDefaultTokens * (2048 * kBf16 + 4));
  EXPECT_EQ(saved_by(deepseek, "dense_block", "moe_act"), 0);
}

// One shared expert of 2048: gate, up and their product.
TEST(RecomputeModules, SharedExpertsDropWhatIsInside) {
  const ModelSpec deepseek = *load_model("deepseek-v3");
  EXPECT_EQ(saved_by(deepseek, "block", "shared_experts"), 3 * test::kDefaultTokens * 2048 * kBf16);
}

TEST(RecomputeModules, AreOnlyThoseThatTheModelHas) {
  const ModelSpec llama = *load_model("llama-3.1-8b");
  for (const char* module : {"moe", "moe_act", "shared_experts", "mla_up_proj"}) {
    EXPECT_THAT(operations_of_module(llama, module), IsEmpty()) << module;
  }
  EXPECT_THAT(operations_of_module(*load_model("deepseek-v3"), "mla_up_proj"),
              UnorderedElementsAre("self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.rope"));
}

// Queries and keys of 128 heads x (128 + 64) and values of 128 x 128 are dropped; the latents stay,
// as the projections' weight gradients need them. Without the queries' projection, these stay.
TEST(RecomputeModules, MlaUpProjDropsQueriesKeysAndValues) {
  const ModelSpec deepseek = *load_model("deepseek-v3");
  constexpr std::int64_t kQueries = test::kDefaultTokens * 128 * 192 * kBf16;
  constexpr std::int64_t kValues = test::kDefaultTokens * 128 * 128 * kBf16;
  EXPECT_EQ(saved_by(deepseek, "block", "mla_up_proj"), 2 * kQueries + kValues);
  EXPECT_EQ(saved_by_operations(deepseek, "block", {"self_attn.kv_b_proj", "self_attn.rope"}),
            kQueries + kValues);
}

// Attention keeps queries and keys after the rotation: without rope, running the projections again
// drops nothing.
TEST(RecomputeModules, SayWhichOperationSavesNothingAlone) {
  const ModelSpec deepseek = *load_model("deepseek-v3");
  const EngineProfile& engine = *find_engine("megatron_ddp");
  JobSpec job;
  job.sequence_length = test::kDefaultTokens;
  job.recompute_operations = {"self_attn.q_b_proj"};
  EXPECT_EQ(saved_by_operations(deepseek, "block", job.recompute_operations), 0);
  const auto idle = idle_recompute(deepseek, job, engine, {});
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle.front().partner, "self_attn.rope");
  job.recompute_operations = operations_of_module(deepseek, "mla_up_proj");
  EXPECT_THAT(idle_recompute(deepseek, job, engine, {}), IsEmpty());
  EXPECT_GT(saved_by_operations(deepseek, "block", job.recompute_operations), 0);
}

}  // namespace
}  // namespace shardwise
