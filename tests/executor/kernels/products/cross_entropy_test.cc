#include "executor/kernels/products/cross_entropy.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kLossRows = 7;
constexpr std::int64_t kHidden = 5;
constexpr std::int64_t kVocabulary = 37;
const std::vector<std::int64_t> kTargets = {0, 36, kIgnored, 5, 5, kIgnored, 20};
constexpr double kScale = 0.25;

double reference_loss(const Doubles& x, const Doubles& w) {
  double loss = 0;
  for (std::size_t row = 0; row < kLossRows; ++row) {
    if (kTargets[row] == kIgnored) continue;
    double sum = 0;
    double at_target = 0;
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      double logit = 0;
      for (std::size_t i = 0; i < kHidden; ++i) logit += x[row * kHidden + i] * w[v * kHidden + i];
      sum += std::exp(logit);
      if (static_cast<std::int64_t>(v) == kTargets[row]) at_target = logit;
    }
    loss += std::log(sum) - at_target;
  }
  return loss;
}

class CrossEntropy : public testing::TestWithParam<std::int64_t> {};

TEST_P(CrossEntropy, IsTheSumOverTokensThatAreNotIgnoredWithItsGradients) {
  Workers workers(2);
  const CrossEntropyShape s = {kLossRows, kHidden, kVocabulary, GetParam()};
  const Floats at = random_floats(kLossRows * kHidden, 1);
  const Floats w = random_floats(kVocabulary * kHidden, 2);
  Floats x = at;
  Floats d_w(w.size(), 1.0F);
  std::vector<std::byte> workspace(static_cast<std::size_t>(cross_entropy_bytes(s, DType::fp32)));
  LossSum loss{10.0, 3};
  cross_entropy(s, x.data(), w.data(), kTargets.data(), static_cast<float>(kScale), d_w.data(),
                loss, workspace.data(), workers);
  const double expected = reference_loss(doubles(at), doubles(w));
  EXPECT_NEAR(loss.loss - 10.0, expected, 1e-6 * expected);
  EXPECT_EQ(loss.tokens - 3, 5);
  for (float& each : d_w) each -= 1.0F;
  const auto of_x = [&](const Doubles& v) { return kScale * reference_loss(v, doubles(w)); };
  const auto of_w = [&](const Doubles& v) { return kScale * reference_loss(doubles(at), v); };
  expect_close(x, numeric_gradient(of_x, doubles(at)), kFp32Tolerance, "d_x");
  expect_close(d_w, numeric_gradient(of_w, doubles(w)), kFp32Tolerance, "d_w");
}

INSTANTIATE_TEST_SUITE_P(Chunks, CrossEntropy, testing::Values(1, 3, kLossRows));

TEST(CrossEntropyRange, SurvivesLogitsThatOverflowAnExponential) {
  Workers workers(1);
  const CrossEntropyShape s = {1, 1, 3, 1};
  Floats x = {1.0F};
  const Floats w = {1000.0F, -1000.0F, 999.0F};
  Floats d_w(3);
  std::vector<std::byte> workspace(static_cast<std::size_t>(cross_entropy_bytes(s, DType::fp32)));
  LossSum loss;
  const std::int64_t target = 2;
  cross_entropy(s, x.data(), w.data(), &target, 1.0F, d_w.data(), loss, workspace.data(), workers);
  EXPECT_NEAR(loss.loss, std::log(1 + std::exp(1.0)), 1e-4);  // logits of 1000 have steps of 6e-5
}

}  // namespace
}  // namespace shardwise::exec
