#include "executor/kernels/products/vocabulary_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kTokenRows = 7;
constexpr std::int64_t kModelWidth = 5;
constexpr std::int64_t kTokens = 37;
const std::vector<std::int64_t> kNextTokens = {0, 36, kIgnored, 5, 12, kIgnored, 20};
constexpr float kLossScale = 0.25F;

/// What a head gives: its loss and gradients, of the input summed over the ranks.
struct Head {
  LossSum loss;
  Floats d_x;
  Floats d_weight;
};

Head whole_head(const Floats& x, const Floats& weight) {
  Workers workers(2);
  const CrossEntropyShape shape = {kTokenRows, kModelWidth, kTokens, kTokenRows};
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(cross_entropy_bytes(shape, DType::fp32)));
  Head head{{}, x, Floats(weight.size(), 0.0F)};
  cross_entropy(shape, head.d_x.data(), weight.data(), kNextTokens.data(), kLossScale,
                head.d_weight.data(), head.loss, workspace.data(), workers);
  return head;
}

/// The same by ranks that have so many tokens each.
Head shared_head(const Floats& x, const Floats& weight, const std::vector<std::int64_t>& tokens) {
  Workers workers(2);
  const std::int64_t ranks = std::ssize(tokens);
  std::vector<RowStatistics> statistics(static_cast<std::size_t>(ranks * kTokenRows));
  std::vector<VocabularyShape> shapes;
  std::vector<Floats> logits;
  std::int64_t first = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t own = tokens[static_cast<std::size_t>(rank)];
    shapes.push_back({kTokenRows, kModelWidth, own, first, ranks, rank});
    logits.emplace_back(static_cast<std::size_t>(kTokenRows * own));
    vocabulary_logits(shapes.back(), x.data(), weight.data() + first * kModelWidth,
                      kNextTokens.data(), logits.back().data(),
                      statistics.data() + rank * kTokenRows, workers);
    first += own;
  }
  Head head{{}, Floats(x.size(), 0.0F), Floats(weight.size(), 0.0F)};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const VocabularyShape& shape = shapes[static_cast<std::size_t>(rank)];
    const std::int64_t begin = shape.first * kModelWidth;
    Floats part = x;
    Floats losses(kTokenRows);
    LossSum loss;
    vocabulary_gradients(shape, part.data(), weight.data() + begin, kNextTokens.data(),
                         statistics.data(), kLossScale,
                         logits[static_cast<std::size_t>(rank)].data(), losses.data(),
                         head.d_weight.data() + begin, loss, workers);
    // Every rank has the loss of all, in the same bits.
    EXPECT_TRUE(rank == 0 || loss.loss == head.loss.loss);
    head.loss = loss;
    for (std::size_t i = 0; i < part.size(); ++i) head.d_x[i] += part[i];
  }
  return head;
}

void expect_near_head(const Head& shared, const Head& whole) {
  EXPECT_NEAR(shared.loss.loss, whole.loss.loss, 1e-6 * whole.loss.loss);
  EXPECT_EQ(shared.loss.tokens, whole.loss.tokens);
  for (std::size_t i = 0; i < whole.d_x.size(); ++i) {
    EXPECT_NEAR(shared.d_x[i], whole.d_x[i], 1e-6 + 1e-5 * std::abs(whole.d_x[i])) << i;
  }
  for (std::size_t i = 0; i < whole.d_weight.size(); ++i) {
    EXPECT_NEAR(shared.d_weight[i], whole.d_weight[i], 1e-6 + 1e-5 * std::abs(whole.d_weight[i]))
        << i;
  }
}

TEST(VocabularyLoss, IsThatOfTheWholeVocabularyHoweverItIsShared) {
  const Floats x = random_floats(kTokenRows * kModelWidth, 1);
  const Floats weight = random_floats(kTokens * kModelWidth, 2);
  const Head whole = whole_head(x, weight);
  expect_near_head(shared_head(x, weight, {37}), whole);
  expect_near_head(shared_head(x, weight, {19, 18}), whole);
  expect_near_head(shared_head(x, weight, {1, 20, 13, 3}), whole);
  // A table that is padded so far that the last rank has no row.
  expect_near_head(shared_head(x, weight, {19, 18, 0}), whole);
}

// The ranks' largest logits are far apart: nothing overflows, nothing is lost.
TEST(VocabularyLoss, TakesLogitsOfAnySize) {
  const Floats x = random_floats(kTokenRows * kModelWidth, 1);
  Floats weight = random_floats(kTokens * kModelWidth, 2);
  for (std::size_t i = 0; i < weight.size() / 2; ++i) weight[i] *= 100;
  expect_near_head(shared_head(x, weight, {18, 19}), whole_head(x, weight));
}

}  // namespace
}  // namespace shardwise::exec
