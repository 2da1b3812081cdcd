#include "executor/optimizer/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace shardwise::exec {
namespace {

std::vector<float> wild_values(std::size_t count) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (float& v : values) {
    v = std::ldexp(static_cast<float>(random()) / 4e9F, static_cast<int>(random() % 60) - 30);
  }
  return values;
}

TEST(ExactSquares, GivesTheSameBitsForEveryOrderAndEveryCut) {
  std::vector<float> values = wild_values(200'000);
  ExactSquares whole;
  whole.add(values);
  std::mt19937 random(8);
  for (int trial = 0; trial < 5; ++trial) {
    std::shuffle(values.begin(), values.end(), random);
    const std::size_t cut = random() % values.size();
    ExactSquares first;
    ExactSquares second;
    first.add(std::span<const float>(values).first(cut));
    second.add(std::span<const float>(values).subspan(cut));
    second.add(ExactSquares::from_bytes(first.bytes()));
    EXPECT_EQ(whole.norm(), second.norm());
  }
}

TEST(ExactSquares, IsTheNormToTheLastBitsOfADouble) {
  const std::vector<float> pythagoras = {3, 4};
  ExactSquares five;
  five.add(pythagoras);
  EXPECT_EQ(five.norm(), 5);

  const std::vector<float> values = wild_values(10'000);
  long double sum = 0;
  for (const float v : values) sum += static_cast<long double>(v) * static_cast<long double>(v);
  ExactSquares exact;
  exact.add(values);
  EXPECT_NEAR(exact.norm() / std::sqrt(static_cast<double>(sum)), 1, 1e-14);
}

TEST(ExactSquares, CountsTheSmallestNumbers) {
  const std::vector<float> least(4, std::numeric_limits<float>::denorm_min());
  ExactSquares sum;
  sum.add(least);
  EXPECT_EQ(sum.norm(), 2 * static_cast<double>(std::numeric_limits<float>::denorm_min()));
}

TEST(ExactSquares, SaysWhenAValueIsInfiniteOrNoNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(100'000, -kInfinity);  // several blocks
  ExactSquares infinite;
  infinite.add(values);
  EXPECT_FALSE(infinite.finite());
  EXPECT_EQ(infinite.norm(), kInfinity);
  values.back() = -std::numeric_limits<float>::quiet_NaN();
  ExactSquares nan;
  nan.add(values);
  infinite.add(nan);
  for (const ExactSquares& each : {nan, infinite, ExactSquares::from_bytes(nan.bytes())}) {
    EXPECT_FALSE(each.finite());
    EXPECT_TRUE(std::isnan(each.norm()));
  }
}

}  // namespace
}  // namespace shardwise::exec
