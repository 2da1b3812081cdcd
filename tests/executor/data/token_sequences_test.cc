#include "executor/data/token_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using testing::HasSubstr;

std::string numbered(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i % 251);
  return text;
}

TokenSequences cut(std::size_t bytes, std::int64_t sequence_length, std::uint64_t seed) {
  return *TokenSequences::cut(TokenStream(numbered(bytes)), sequence_length, 256, seed, "text");
}

TEST(TokenSequences, MeetEveryWindowOnceAnEpochInAnOrderOfItsOwn) {
  const TokenSequences text = cut(101, 4, 9);
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

TEST(TokenSequences, AreTheSameForTheSameSeedAndOthersForAnother) {
  const TokenSequences a = cut(1001, 8, 1);
  const TokenSequences b = cut(1001, 8, 1);
  const TokenSequences c = cut(1001, 8, 2);
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

TEST(TokenSequences, RefuseAStreamThatHasNone) {
  const auto short_one = TokenSequences::cut(TokenStream(numbered(8)), 8, 256, 1, "eight");
  ASSERT_FALSE(short_one);
  EXPECT_THAT(to_string(short_one.problems()),
              HasSubstr("eight: --data: 8 tokens are no sequence of 8 and one more"));
  EXPECT_TRUE(TokenSequences::cut(TokenStream(numbered(9)), 8, 256, 1, "nine"));
}

TEST(TokenSequences, NameATokenThatTheModelDoesNotHaveAndWhereItIs) {
  const TokenStream stream(std::vector<std::uint32_t>{1, 2, 96, 4, 97});
  const auto refused = TokenSequences::cut(stream, 2, 96, 1, "tokens.bin");
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      to_string(refused.problems()),
      HasSubstr(
          "tokens.bin: --data: token 96 at position 2 is outside the model's vocabulary of 96"));
  EXPECT_TRUE(TokenSequences::cut(stream, 2, 98, 1, "tokens.bin"));
}

/// The sequences of a step in the order in which gradients are added, whoever reads them.
std::vector<std::int64_t> read_by(std::int64_t ranks, std::int64_t microbatches,
                                  std::int64_t micro_batch_size, std::int64_t position) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t mb = 0; mb < microbatches; ++mb) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const BatchShare share = {ranks, rank, microbatches, micro_batch_size};
      EXPECT_EQ(share.batch(), ranks * microbatches * micro_batch_size);
      for (std::int64_t s = 0; s < micro_batch_size; ++s) {
        numbers.push_back(share.first(position, mb) + s);
      }
    }
  }
  return numbers;
}

// A run of 12 sequences a step that goes from 1 rank to 2, 3, 4, 6 and 12 and back reads what one
// rank would have read.
TEST(BatchShare, ReadsTheSameSequencesWhateverTheNumberOfRanks) {
  std::vector<std::int64_t> read;
  std::int64_t position = 0;
  for (const std::int64_t ranks : {1, 2, 3, 4, 6, 12, 6, 1}) {
    for (const std::int64_t micro_batch_size : {1, 12 / static_cast<int>(ranks)}) {
      const std::vector<std::int64_t> step =
          read_by(ranks, 12 / ranks / micro_batch_size, micro_batch_size, position);
      read.insert(read.end(), step.begin(), step.end());
      position += 12;
    }
  }
  std::vector<std::int64_t> expected;
  for (std::int64_t n = 0; n < position; ++n) expected.push_back(n);
  EXPECT_EQ(read, expected);
}

}  // namespace
}  // namespace shardwise::exec
