// Logits, loss and every gradient equal those of Hugging Face's model code, in double there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executor/support/tiny_model.h"

namespace shardwise::exec {
namespace {

// fp32 here, double there: two layers of sums of some tens of terms and transformers' own fp32
// norms. The differences seen are below a tenth of it.
constexpr double kTolerance = 2e-5;
// Storage rounds by 2^-9, some ten times on the way through a layer; see Bf16 below.
constexpr double kBf16Tolerance = 0.1;

void expect_golden(const std::string& name, const LayerShape& shape, double tolerance) {
  const JsonValue& golden = *golden_models().find("models")->find(name);
  const ModelSpec model = golden_model(name);
  const ModelRun run = run_model(model, shape, 2);
  EXPECT_EQ(run.loss.tokens, golden.find("tokens")->integer);
  const double loss = golden.find("loss")->number;
  EXPECT_NEAR(run.loss.loss, loss, tolerance * loss);
  expect_golden_tensor("logits", run.logits, *golden.find("logits"), tolerance);
  const auto& gradients = golden.find("gradients")->members;
  EXPECT_EQ(run.gradients.size(), gradients.size());
  for (const auto& [tensor, expected] : gradients) {
    ASSERT_TRUE(run.gradients.contains(tensor)) << tensor;
    expect_golden_tensor(tensor, run.gradients.at(tensor), expected, tolerance);
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, LogitsLossAndEveryGradientEqualTransformers) {
  expect_golden(GetParam(), golden_shape(), kTolerance);
}

TEST_P(Golden, SoWithRecomputeAndTheLossByChunks) {
  LayerShape shape = golden_shape();
  shape.recompute = true;
  shape.loss_chunk = 7;
  expect_golden(GetParam(), shape, kTolerance);
}

TEST_P(Golden, Bf16StaysNear) {
  LayerShape shape = golden_shape();
  shape.storage = DType::bf16;
  expect_golden(GetParam(), shape, kBf16Tolerance);
  shape.gradients = DType::bf16;
  expect_golden(GetParam(), shape, kBf16Tolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(golden_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace shardwise::exec
