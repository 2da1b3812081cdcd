#include "executor/kernels/embedding.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

const EmbeddingShape kEmbeddingShape = {2, 3, 2};
const std::vector<std::int64_t> kTokens = {3, 0, 3, 1, 3, 0};

TEST(Embedding, AddsARowOfEachTable) {
  Workers workers(2);
  const Floats table = {0, 1, 10, 11, 20, 21, 30, 31};
  const Floats positions = {100, 200, 300, 400, 500, 600};
  Floats y(12);
  embedding_forward(kEmbeddingShape, kTokens.data(), table.data(), positions.data(), y.data(),
                    workers);
  EXPECT_EQ(y, (Floats{130, 231, 300, 401, 530, 631, 110, 211, 330, 431, 500, 601}));
  embedding_forward<float>(kEmbeddingShape, kTokens.data(), table.data(), nullptr, y.data(),
                           workers);
  EXPECT_EQ(y, (Floats{30, 31, 0, 1, 30, 31, 10, 11, 30, 31, 0, 1}));
}

TEST(Embedding, AddsEachTokensGradientToItsRows) {
  Workers workers(2);
  const Floats d_y = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  Floats d_table(8, 0.5F);
  Floats d_positions(6, 0.5F);
  embedding_backward(kEmbeddingShape, kTokens.data(), d_y.data(), d_table.data(),
                     d_positions.data(), workers);
  EXPECT_EQ(d_table, (Floats{1028.5F, 2056.5F, 64.5F, 128.5F, 0.5F, 0.5F, 273.5F, 546.5F}));
  EXPECT_EQ(d_positions, (Floats{65.5F, 130.5F, 260.5F, 520.5F, 1040.5F, 2080.5F}));
}

// 256 + 1 + 1 is 256 when each addition is rounded to bf16, 258 when the sum is.
TEST(Embedding, SumsTheRowsOfATokenBeforeTheyAreRounded) {
  Workers workers(2);
  const std::vector<std::int64_t> tokens = {1, 1, 1, 0, 1, 1};
  const std::vector<Bf16> d_y = rounded({0, 1, 256, 1, 1, 1, 3, 3, 1, 1, 0, 1});
  std::vector<Bf16> d_table = rounded({0, 0, 0, 256});
  std::vector<Bf16> d_positions = rounded({0, 0, 0, 0, 0, 0});
  embedding_backward(kEmbeddingShape, tokens.data(), d_y.data(), d_table.data(), d_positions.data(),
                     workers);
  EXPECT_EQ(widened(d_table), (Floats{3, 3, 258, 260}));  // 256 + 5 = 261, between 260 and 262
  EXPECT_EQ(widened(d_positions), (Floats{3, 4, 256, 2, 1, 2}));  // 257, a tie, to even
}

}  // namespace
}  // namespace shardwise::exec
