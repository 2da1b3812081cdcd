#include "executor/data/byte_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "executor/data/random.h"

namespace shardwise::exec {
namespace {

using testing::HasSubstr;

std::string numbered(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i % 251);
  return text;
}

TEST(ByteText, MeetsEveryWindowOnceAnEpochInAnOrderOfItsOwn) {
  const ByteText text(numbered(101), 4, 9);
  ASSERT_EQ(text.windows(), 25);
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int64_t> begins;
    std::vector<std::int64_t> order;
    for (std::int64_t n = 0; n < 25; ++n) {
      std::vector<std::int64_t> inputs(4);
      std::vector<std::int64_t> targets(4);
      text.sequence(epoch * 25 + n, inputs, targets);
      begins.insert(inputs[0]);
      order.push_back(inputs[0]);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(targets[i], inputs[i] + 1);
    }
    EXPECT_EQ(begins.size(), 25U);
    epochs.push_back(order);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(ByteText, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const ByteText a(numbered(1001), 8, 1);
  const ByteText b(numbered(1001), 8, 1);
  const ByteText c(numbered(1001), 8, 2);
  std::vector<std::int64_t> from_a(8);
  std::vector<std::int64_t> from_b(8);
  std::vector<std::int64_t> from_c(8);
  std::vector<std::int64_t> targets(8);
  bool differs = false;
  for (std::int64_t n = 0; n < 10; ++n) {
    a.sequence(n, from_a, targets);
    b.sequence(n, from_b, targets);
    c.sequence(n, from_c, targets);
    EXPECT_EQ(from_a, from_b);
    differs = differs || from_a != from_c;
  }
  EXPECT_TRUE(differs);
}

TEST(ByteText, SaysWhatIsWrongWithAFile) {
  const auto missing = ByteText::read("no/such/text", 8, 1);
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_string(missing.problems()), HasSubstr("no/such/text: --data: cannot be read"));
  const auto short_one = ByteText::read("configs/models/gpt2.json", 1 << 20, 1);
  ASSERT_FALSE(short_one);
  EXPECT_THAT(to_string(short_one.problems()), HasSubstr("no sequence of 1048576 tokens"));
}

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

}  // namespace
}  // namespace shardwise::exec
