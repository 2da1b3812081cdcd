#include "simulator/workload/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace shardwise::sim {
namespace {

constexpr std::size_t kRandomDraws = 2'000'000;

std::vector<double> drawn() {
  std::vector<double> numbers(kRandomDraws);
  for (std::size_t i = 0; i < kRandomDraws; ++i) numbers[i] = normal(11, i);
  return numbers;
}

double share_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

TEST(Normal, IsTheSameForASeedAndANumberInAnyOrder) {
  const double third = normal(5, 3);
  EXPECT_NE(normal(5, 2), third);
  EXPECT_NE(normal(6, 3), third);
  EXPECT_EQ(normal(5, 3), third);
}

// Five standard errors: one of the n-th power is sqrt(variance of the power / draws).
TEST(Normal, HasTheMomentsOfTheNormalDistribution) {
  struct Moment {
    int power;
    double mean;
    double variance;
  };
  const std::vector<double> numbers = drawn();
  for (const Moment& moment : {Moment{1, 0, 1}, Moment{2, 1, 2}, Moment{3, 0, 15}, Moment{4, 3, 96},
                               Moment{6, 15, 10170}}) {
    double sum = 0;
    for (const double x : numbers) sum += std::pow(x, moment.power);
    const double error = std::sqrt(moment.variance / kRandomDraws);
    EXPECT_NEAR(sum / kRandomDraws, moment.mean, 5 * error) << moment.power;
  }
}

// Kolmogorov and Smirnov: farther than 1.95 / sqrt(draws) in one of 1,000 samples.
TEST(Normal, HasTheDistributionFunctionOfTheNormalDistribution) {
  std::vector<double> numbers = drawn();
  std::sort(numbers.begin(), numbers.end());
  double farthest = 0;
  for (std::size_t i = 0; i < kRandomDraws; ++i) {
    const double share = static_cast<double>(i) / kRandomDraws;
    farthest = std::max(farthest, std::abs(share_below(numbers[i]) - share));
  }
  EXPECT_LT(farthest, 1.95 / std::sqrt(kRandomDraws));
}

// Where the lowest layer of the ziggurat ends is the rare part of the generator: 1,150 of the
// draws.
TEST(Normal, HasBothTails) {
  const std::vector<double> numbers = drawn();
  for (const double from : {3.0, 3.4426, 4.0}) {
    const double expected = share_below(-from) * kRandomDraws;
    const auto above =
        std::count_if(numbers.begin(), numbers.end(), [&](double x) { return x > from; });
    const auto below =
        std::count_if(numbers.begin(), numbers.end(), [&](double x) { return x < -from; });
    for (const auto count : {above, below}) {
      EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected)) << from;
    }
  }
}

// Numbers that follow one another are those of the operations of a rank.
TEST(Normal, DoesNotDependOnTheNumberBefore) {
  const std::vector<double> numbers = drawn();
  for (const std::size_t apart : {1U, 2U, 641U}) {
    double product = 0;
    for (std::size_t i = apart; i < kRandomDraws; ++i) product += numbers[i] * numbers[i - apart];
    EXPECT_NEAR(product / kRandomDraws, 0, 5 / std::sqrt(kRandomDraws)) << apart;
  }
}

TEST(JitterFactor, HasMean1AndTheDeviationOfALogNormal) {
  const double deviation = 0.1;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kRandomDraws; ++i) {
    const double factor = jitter_factor(3, i, deviation);
    ASSERT_GT(factor, 0);
    sum += factor;
    squares += (factor - 1) * (factor - 1);
  }
  const double expected = std::sqrt(std::expm1(deviation * deviation));
  EXPECT_NEAR(sum / kRandomDraws, 1, 5 * expected / std::sqrt(kRandomDraws));
  EXPECT_NEAR(std::sqrt(squares / kRandomDraws) / expected, 1, 0.01);
}

}  // namespace
}  // namespace shardwise::sim
