#include "executor/transformer/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/model/hf_config.h"
#include "tests/executor/support/tiny_model.h"

namespace shardwise::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Layers : public testing::TestWithParam<std::string> {};

TEST_P(Layers, GiveTheSameBitsOnAnyNumberOfThreads) {
  const ModelSpec model = golden_model(GetParam());
  const ModelRun one = run_model(model, golden_shape(), 1);
  const ModelRun three = run_model(model, golden_shape(), 3);
  EXPECT_EQ(one.loss.loss, three.loss.loss);
  EXPECT_EQ(one.gradients, three.gradients);
}

TEST_P(Layers, GiveTheSameBitsWhenTheyAreRecomputed) {
  const ModelSpec model = golden_model(GetParam());
  LayerShape again = golden_shape();
  again.recompute = true;
  const ModelRun kept = run_model(model, golden_shape(), 2);
  const ModelRun recomputed = run_model(model, again, 2);
  EXPECT_EQ(kept.loss.loss, recomputed.loss.loss);
  EXPECT_EQ(kept.gradients, recomputed.gradients);
}

TEST_P(Layers, GiveTheSameBitsWhicheverOperationsAreRecomputed) {
  const ModelSpec model = golden_model(GetParam());
  const ModelRun kept = run_model(model, golden_shape(), 2);
  for (unsigned chosen = 1; chosen < 16; ++chosen) {
    LayerShape again = golden_shape();
    again.again = {(chosen & 1U) != 0, (chosen & 2U) != 0, (chosen & 4U) != 0, (chosen & 8U) != 0};
    const ModelRun recomputed = run_model(model, again, 2);
    EXPECT_EQ(kept.loss.loss, recomputed.loss.loss) << chosen;
    EXPECT_EQ(kept.gradients, recomputed.gradients) << chosen;
  }
}

TEST_P(Layers, AddTheGradientsOfMicroBatchesInFlight) {
  const ModelSpec model = golden_model(GetParam());
  const ModelRun one = run_model(model, golden_shape(), 2);
  const ModelRun two = run_model(model, golden_shape(), 2, 2);
  EXPECT_EQ(two.loss.loss, 2 * one.loss.loss);
  EXPECT_EQ(two.loss.tokens, 2 * one.loss.tokens);
  for (const auto& [name, gradient] : one.gradients) {
    const std::vector<float>& sum = two.gradients.at(name);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(sum[i], 2 * gradient[i], 1e-5F * (1 + std::abs(gradient[i]))) << name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Layers, testing::ValuesIn(golden_names()),
                         [](const auto& param) { return param.param; });

TEST(CannotRun, NamesEachThingThatHasNoKernel) {
  const Result<ModelSpec> gemma = load_model("gemma-2b");
  ASSERT_TRUE(gemma.ok());
  EXPECT_THAT(
      cannot_run(*gemma, {}),
      ElementsAre("/model/model_type: gemma is none of gpt2, llama, mistral, qwen2, qwen3"));
  const Result<ModelSpec> llama = load_model("llama-3.1-8b");
  ASSERT_TRUE(llama.ok());
  EXPECT_THAT(cannot_run(*llama, {}), IsEmpty());
  JobSpec job;
  job.precision = DType::fp8;
  job.loss = LossKernel::materialised;
  job.dropout = 0.1;
  EXPECT_THAT(cannot_run(*llama, job),
              ElementsAre("/job/precision: fp8 is neither fp32 nor bf16",
                          "/job/loss: materialised is neither chunked nor fused",
                          "/job/dropout: there is none, 0 is executable"));
}

TEST(CannotRun, NamesTheOperationsThatAreRecomputedAlone) {
  JobSpec job;
  job.recompute_operations = {"mlp_norm", "self_attn.q_proj"};
  const std::vector<std::string> lines = cannot_run(*load_model("llama-3.2-1b"), job);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.front(),
            "/job/recompute_operations: self_attn.q_proj is not recomputed alone, attention_norm, "
            "self_attn.core, mlp_norm, mlp.activation are");
}

}  // namespace
}  // namespace shardwise::exec
