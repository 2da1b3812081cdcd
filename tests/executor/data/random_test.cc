#include "executor/data/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace shardwise::exec {
namespace {

// Mean and deviation of 100,000 draws, four standard errors wide.
TEST(RandomNormal, HasMeanZeroAndDeviationOne) {
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random_normal(5, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 4 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 4 * std::sqrt(2.0 / kDraws));
}

/// Numbers of `count` counters from `first` on whose bits are not those of random_normal().
std::int64_t differing(std::uint64_t seed, std::uint64_t first, std::size_t count) {
  std::vector<float> drawn(count);
  random_normals(seed, first, drawn);
  std::int64_t differ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(random_normal(seed, first + i));
    if (std::bit_cast<std::uint32_t>(drawn[i]) != bits) ++differ;
  }
  return differ;
}

// A number in a million rounds to either of two floats by the vectors' logarithm and cosine.
TEST(RandomNormals, HaveTheBitsOfThoseDrawnOneByOne) {
  EXPECT_EQ(differing(0, 0, 3'000'000), 0);
  EXPECT_EQ(differing(seed_of(1, "lm_head.weight"), 12'345'678'901, 1'000'000), 0);
}

TEST(RandomNormals, AreDrawnFromAnyCounterInRunsOfAnyLength) {
  for (const std::size_t count : {0U, 1U, 7U, 255U, 256U, 257U, 1000U}) {
    for (const std::uint64_t first : {0U, 1U, 100U})
      EXPECT_EQ(differing(3, first, count), 0) << count;
  }
}

/// The counter whose bits are these: each step of random_bits() backwards.
std::uint64_t counter_of(std::uint64_t seed, std::uint64_t bits) {
  const auto unshifted = [](std::uint64_t x, int by) {
    std::uint64_t y = x;
    for (int done = by; done < 64; done += by) y = x ^ (y >> by);
    return y;
  };
  const auto inverse = [](std::uint64_t odd) {  // modulo 2^64, by Newton's iteration
    std::uint64_t x = odd;
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
    return x;
  };
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = unshifted(bits, 31) * inverse(0x94d049bb133111ebULL);
  x = unshifted(x, 27) * inverse(0xbf58476d1ce4e5b9ULL);
  x = unshifted(x, 30);
  return (x - mixed(seed + kStep)) * inverse(kStep) - 1;
}

// The logarithm of 1, the least number, and angles at and beside each multiple of a right angle.
TEST(RandomNormals, HaveTheBitsOfThoseDrawnOneByOneAtTheEdges) {
  const std::vector<std::uint64_t> uniforms = {
      0, 1, 2, 0x7fffffff, 0x80000000, 0xb504f333, 0xb504f334, 0xfffffffe, 0xffffffff};
  for (const std::uint64_t u : uniforms) {
    for (std::uint64_t angle = 0; angle <= 8; ++angle) {
      for (std::uint64_t beside = 0; beside <= 4; ++beside) {
        const std::uint64_t bits = u << 32 | ((angle * 0x20000000 + beside - 2) & 0xffffffff);
        const std::uint64_t counter = counter_of(9, bits);
        ASSERT_EQ(random_bits(9, counter), bits);
        EXPECT_EQ(differing(9, counter, 256), 0) << std::hex << bits;
        EXPECT_EQ(differing(9, counter - 200, 256), 0) << std::hex << bits;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::exec
