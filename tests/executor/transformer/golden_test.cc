// Logits, loss and every gradient equal those of Hugging Face's model code, in double there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/executor/support/tiny_model.h"

namespace shardwise::exec {
namespace {

// fp32 here, double there: two layers of sums of some tens of terms and transformers' own fp32
// norms. The differences seen are below a tenth of it.
constexpr double kTolerance = 2e-5;
// Storage rounds by 2^-9, some ten times on the way through a layer; see Bf16 below.
constexpr double kBf16Tolerance = 0.1;

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

/// `values` against the norm and the dot products that the file has of the tensor `name`.
void expect_same(const std::string& name, const std::vector<float>& values,
                 const JsonValue& expected, double tolerance) {
  const double norm = expected.find("norm")->number;
  EXPECT_NEAR(std::sqrt(dot(values, values)), norm, tolerance * norm) << name;
  const auto& dots = expected.find("dots")->elements;
  ASSERT_EQ(dots.size(), 4U);
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const std::vector<float> direction =
        noise(name + "/" + std::to_string(i), static_cast<std::int64_t>(values.size()));
    EXPECT_NEAR(dot(values, direction), dots[i].number, tolerance * norm) << name << " " << i;
  }
}

void expect_golden(const std::string& name, const LayerShape& shape, double tolerance) {
  const JsonValue& golden = *golden_models().find("models")->find(name);
  const ModelSpec model = golden_model(name);
  const ModelRun run = run_model(model, shape, 2);
  EXPECT_EQ(run.loss.tokens, golden.find("tokens")->integer);
  const double loss = golden.find("loss")->number;
  EXPECT_NEAR(run.loss.loss, loss, tolerance * loss);
  expect_same("logits", run.logits, *golden.find("logits"), tolerance);
  const auto& gradients = golden.find("gradients")->members;
  EXPECT_EQ(run.gradients.size(), gradients.size());
  for (const auto& [tensor, expected] : gradients) {
    ASSERT_TRUE(run.gradients.contains(tensor)) << tensor;
    expect_same(tensor, run.gradients.at(tensor), expected, tolerance);
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
