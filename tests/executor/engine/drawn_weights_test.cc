// Weights as a seed draws them. Runs of years ago are repeated by their seed: a change of these
// bits is a change of every run.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/data/random.h"
#include "executor/engine/rank_state.h"

namespace shardwise::exec {
namespace {

UnitTensor matrix(const std::string& name) {
  return {.name = name, .shape = {1000, 1000}, .elements = 1'000'000, .filled = 1'000'000};
}

std::vector<float> drawn(const std::string& name, std::int64_t first, std::size_t count) {
  std::vector<float> values(count);
  drawn_weights(17, 0.25)(matrix(name), first, values);
  return values;
}

/// FNV-1a of the bits.
std::uint64_t digest_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const float each : values) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(each)) * 0x100000001b3ULL;
  }
  return hash;
}

TEST(DrawnWeights, HaveTheBitsThatTheirSeedAlwaysGave) {
  EXPECT_EQ(digest_of(drawn("model.embed_tokens.weight", 0, 1'000'000)), 0x22dfb0f63f5c758bULL);
  EXPECT_EQ(digest_of(drawn("model.layers.3.mlp.down_proj.weight", 0, 1'000'000)),
            0x952f0b33d20e6a04ULL);
  EXPECT_EQ(
      drawn("model.embed_tokens.weight", 0, 4),
      (std::vector<float>{0x1.ffd366p-5F, -0x1.11db52p-5F, -0x1.aa6032p-7F, -0x1.7100fap-14F}));
}

// Ranks and threads draw parts of a tensor, each its own.
TEST(DrawnWeights, DoNotDependOnTheRunThatTheyAreDrawnIn) {
  const std::vector<float> whole = drawn("lm_head.weight", 0, 3000);
  for (const std::size_t first : {0U, 1U, 255U, 1000U}) {
    for (const std::size_t count : {1U, 256U, 1500U}) {
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
      EXPECT_EQ(drawn("lm_head.weight", static_cast<std::int64_t>(first), count),
                std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

TEST(DrawnWeights, BeginVectorsWithOnesAndBiasesWithZeros) {
  UnitTensor norm = {.name = "norm.weight", .shape = {300}, .elements = 300, .filled = 300};
  std::vector<float> values(300, -1);
  drawn_weights(17, 1)(norm, 0, values);
  EXPECT_EQ(values, std::vector<float>(300, 1));
  norm.name = "norm.bias";
  drawn_weights(17, 1)(norm, 0, values);
  EXPECT_EQ(values, std::vector<float>(300, 0));
}

}  // namespace
}  // namespace shardwise::exec
