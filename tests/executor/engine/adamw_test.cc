#include "executor/optimizer/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace shardwise::exec {
namespace {

// Algorithm 2 of arXiv:1711.05101, written down in double precision for one element.
TEST(AdamW, FollowsThePaperOverSeveralSteps) {
  OptimizerRules rules;
  rules.peak_learning_rate = 0.01;
  rules.weight_decay = 0.1;
  rules.clip_norm = 0;
  double w = 0.7;
  double m = 0;
  double v = 0;
  std::vector<float> weights = {0.7F};
  std::vector<float> first = {0};
  std::vector<float> second = {0};
  for (int t = 0; t < 10; ++t) {
    const double g = std::sin(t + 1.0);
    m = rules.beta1 * m + (1 - rules.beta1) * g;
    v = rules.beta2 * v + (1 - rules.beta2) * g * g;
    const double corrected_m = m / (1 - std::pow(rules.beta1, t + 1));
    const double corrected_v = v / (1 - std::pow(rules.beta2, t + 1));
    w = w - rules.peak_learning_rate *
                (corrected_m / (std::sqrt(corrected_v) + rules.epsilon) + rules.weight_decay * w);
    const AdamStep step = adam_step(rules, t);
    const std::vector<float> gradient = {static_cast<float>(g)};
    adamw(step, step.decay, gradient, weights, first, second);
    EXPECT_NEAR(weights[0], w, 1e-6) << "step " << t;
  }
}

TEST(AdamW, GivesAnElementTheSameBitsWhereverItLies) {
  constexpr std::size_t kCount = 103;
  std::vector<float> gradients(kCount);
  std::vector<float> weights(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    gradients[i] = std::sin(static_cast<float>(i));
    weights[i] = std::cos(static_cast<float>(i));
  }
  const OptimizerRules rules;
  const AdamStep step = adam_step(rules, 3);
  std::vector<float> whole = weights;
  std::vector<float> first(kCount, 0.1F);
  std::vector<float> second(kCount, 0.2F);
  adamw(step, 0.99F, gradients, whole, first, second);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<float> one = {weights[i]};
    std::vector<float> m = {0.1F};
    std::vector<float> v = {0.2F};
    adamw(step, 0.99F, std::span<const float>(gradients).subspan(i, 1), one, m, v);
    EXPECT_EQ(one[0], whole[i]);
  }
}

TEST(LearningRate, WarmsUpAndFollowsHalfACosine) {
  OptimizerRules rules;
  rules.peak_learning_rate = 1;
  rules.least_learning_rate = 0.1;
  rules.warmup_steps = 10;
  rules.decay_steps = 110;
  EXPECT_DOUBLE_EQ(learning_rate(rules, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(rules, 9), 1);
  EXPECT_DOUBLE_EQ(learning_rate(rules, 10), 1);
  EXPECT_NEAR(learning_rate(rules, 60), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(rules, 110), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(rules, 100'000), 0.1);
}

TEST(ClipFactor, LeavesSmallGradientsAndShortensLargeOnes) {
  EXPECT_EQ(clip_factor(1, 0.5), 1);
  EXPECT_EQ(clip_factor(1, 4), 0.25);
  EXPECT_EQ(clip_factor(0, 4), 1);
}

}  // namespace
}  // namespace shardwise::exec
