#include "executor/optimizer/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "executor/optimizer/stochastic_rounding.h"

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

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Splits fp32 numbers and joins them again; bits that are not a NaN's have to be the same.
void expect_joined_again(const std::vector<float>& main, float square) {
  std::vector<Bf16> weights(main.size());
  std::vector<std::uint16_t> remainders(main.size());
  std::vector<float> second(main.size(), square);
  std::vector<float> joined(main.size());
  for (std::size_t i = 0; i < main.size(); ++i) weights[i] = from_float<Bf16>(main[i]);
  split_weights(main, remainders, second);
  join_weights(weights, remainders, second, joined);
  for (std::size_t i = 0; i < main.size(); ++i) {
    if (std::isnan(main[i])) {
      ASSERT_TRUE(std::isnan(joined[i])) << std::hex << bits(main[i]);
    } else {
      ASSERT_EQ(bits(joined[i]), bits(main[i])) << std::hex;
    }
  }
  clear_signs(second);
  for (const float each : second) ASSERT_EQ(bits(each), bits(square));
}

// Every lower half beside zeros, the least and largest denormals and normals, infinities, powers
// of 2 and 256 others of both signs; the lower halves about ties beside every upper half.
TEST(WeightHalves, JoinToTheSameBits) {
  std::vector<std::uint32_t> upper = {0,      1,      0x007f, 0x0080, 0x3f7f, 0x3f80, 0x3f81,
                                      0x7f7e, 0x7f7f, 0x7f80, 0x7fc0, 0x7fff, 0xff7f, 0xffff};
  for (std::uint32_t each = 5; each < 0x10000; each += 257) upper.push_back(each);
  std::vector<float> beside(0x10000);
  for (const std::uint32_t each : upper) {
    for (std::uint32_t low = 0; low < 0x10000; ++low) beside[low] = number(each << 16U | low);
    expect_joined_again(beside, 0);
  }
  for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
    for (std::uint32_t each = 0; each < 0x10000; ++each) beside[each] = number(each << 16U | low);
    expect_joined_again(beside, 0.25F);
  }
}

// Every fourth begins half way between two bf16 numbers, and stays there where the rate is 0.
TEST(WeightHalves, AreUpdatedAsWholeWeights) {
  constexpr std::size_t kCount = 2500;
  std::mt19937 random(1);
  for (const double rate : {1e-3, 0.0}) {
    OptimizerRules rules;
    rules.peak_learning_rate = rules.least_learning_rate = rate;
    std::vector<float> main(kCount);
    std::vector<float> gradients(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      main[i] = std::cos(static_cast<float>(i));
      if (i % 4 == 0) main[i] = number((bits(main[i]) & 0xffff0000U) | 0x8000U);
    }
    std::vector<float> first(kCount, 0.0F);
    std::vector<float> second(kCount, 0.0F);
    std::vector<Bf16> weights(kCount);
    std::vector<std::uint16_t> remainders(kCount);
    for (std::size_t i = 0; i < kCount; ++i) weights[i] = from_float<Bf16>(main[i]);
    std::vector<float> its_first = first;
    std::vector<float> its_second = second;
    split_weights(main, remainders, its_second);
    for (int t = 0; t < 5; ++t) {
      for (float& each : gradients) each = static_cast<float>(random() % 1000) * 1e-3F - 0.5F;
      const AdamStep step = adam_step(rules, t);
      adamw(step, step.decay, gradients, main, first, second);
      adamw(step, step.decay, gradients, WeightHalves{weights, remainders}, its_first, its_second);
      std::vector<float> joined(kCount);
      join_weights(weights, remainders, its_second, joined);
      EXPECT_EQ(joined, main);
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(weights[i].bits, from_float<Bf16>(main[i]).bits) << i;
      }
      EXPECT_EQ(its_first, first);
      std::vector<float> squares = its_second;
      clear_signs(squares);
      EXPECT_EQ(squares, second);
      if (rate > 0) continue;
      EXPECT_TRUE(std::ranges::any_of(its_second, [](float x) { return std::signbit(x); }));
    }
  }
}

// Over 2^16 draws the mean of a number between two neighbours is within five standard deviations,
// 5 sqrt(p (1 - p)) / 256 of the way; what is a bf16 stays.
TEST(StochasticRounding, IsUnbiasedBetweenTheTwoNeighbours) {
  constexpr int kDraws = 1 << 16;
  for (const float value : {1.001F, -1.001F, 3.14159F, -2.7e-39F, 1e-30F, 2.9999F}) {
    const std::uint32_t low = bits(value) & 0xffffU;
    ASSERT_NE(low, 0U);
    const std::uint16_t below = static_cast<std::uint16_t>(bits(value) >> 16U);
    int up = 0;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t key = rounding_key(7, 3);
      const Bf16 made = stochastically_rounded(bits(value), rounding_draw(key, std::uint64_t(i)));
      if (made.bits == below) continue;
      ASSERT_EQ(made.bits, below + 1);
      ++up;
    }
    const double p = low / 65536.0;
    EXPECT_NEAR(up / double{kDraws}, p, 5 * std::sqrt(p * (1 - p)) / 256) << value;
  }
  for (const float exact : {0.0F, -0.0F, 1.0F, -0.75F, INFINITY, -INFINITY}) {
    for (const std::uint32_t draw : {0U, 0x8000U, 0xffffU}) {
      EXPECT_EQ(bits(to_float(stochastically_rounded(bits(exact), draw))), bits(exact));
    }
  }
  EXPECT_TRUE(std::isnan(to_float(stochastically_rounded(0x7f800001U, 0xffffU))));
  EXPECT_TRUE(std::isnan(to_float(stochastically_rounded(0xffffffffU, 0xffffU))));
}

TEST(StochasticRounding, DrawsAnewForEachStepTensorAndElement) {
  std::set<std::uint64_t> draws;
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (std::uint64_t tensor = 0; tensor < 4; ++tensor) {
      std::uint64_t four = 0;  // elements
      for (std::uint64_t i = 0; i < 4; ++i) {
        four = four << 16U | rounding_draw(rounding_key(random_bits(1, step), tensor), i);
      }
      draws.insert(four);
    }
  }
  EXPECT_EQ(draws.size(), 16U);
}

// A tensor in one piece and in pieces of 37 elements, one of them behind others of its rank.
TEST(StochasticRounding, GivesAWeightTheSameBitsWhereverItLies) {
  constexpr std::size_t kCount = 2100;
  std::vector<float> gradients(kCount);
  std::vector<Bf16> whole(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    gradients[i] = std::sin(static_cast<float>(i));
    whole[i] = from_float<Bf16>(std::cos(static_cast<float>(i)));
  }
  std::vector<Bf16> cut = whole;
  AdamStep step = adam_step({}, 3);
  step.rounding_seed = 5;
  std::vector<float> first(kCount, 0.1F);
  std::vector<float> second(kCount, 0.2F);
  adamw(step, 0.99F, gradients, RoundedWeights{whole, 11, 0}, first, second);
  std::fill(first.begin(), first.end(), 0.1F);
  std::fill(second.begin(), second.end(), 0.2F);
  int nearest = 0;
  for (std::size_t at = 0; at < kCount; at += 37) {
    const std::size_t count = std::min<std::size_t>(37, kCount - at);
    const auto part = [&](auto& all) { return std::span(all).subspan(at, count); };
    std::vector<float> exact(count);
    for (std::size_t i = 0; i < count; ++i) exact[i] = to_float(cut[at + i]);
    std::vector<float> its_first(count, 0.1F);
    std::vector<float> its_second(count, 0.2F);
    adamw(step, 0.99F, part(gradients), exact, its_first, its_second);
    adamw(step, 0.99F, part(gradients), RoundedWeights{part(cut), 11, at}, part(first),
          part(second));
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(cut[at + i].bits, whole[at + i].bits) << at + i;
      nearest += cut[at + i].bits == from_float<Bf16>(exact[i]).bits ? 1 : 0;
    }
  }
  EXPECT_LT(nearest, static_cast<int>(kCount));
  EXPECT_GT(nearest, static_cast<int>(kCount) / 2);
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
