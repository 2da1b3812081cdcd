#include "executor/kernels/cuda/embedding.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kVocabulary = 11;  // most tokens occur several times

template <class E>
bool same_bits(const std::vector<E>& a, const std::vector<E>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(E)) == 0;
}

/// Tokens of all rows; one that only the first and the last have.
std::vector<std::int64_t> tokens_of(const EmbeddingShape& s, unsigned seed) {
  std::vector<std::int64_t> tokens;
  for (const float each : random_floats(s.batch * s.sequence, seed)) {
    tokens.push_back(static_cast<std::int64_t>(std::abs(each) * 1000) % (kVocabulary - 1));
  }
  tokens.front() = tokens.back() = kVocabulary - 1;
  return tokens;
}

template <class E>
void expect_forward_as_cpu(const EmbeddingShape& s, unsigned seed) {
  Workers workers(1);
  const std::vector<std::int64_t> tokens = tokens_of(s, seed);
  const std::vector<E> table = as<E>(random_floats(kVocabulary * s.width, seed + 1));
  const std::vector<E> positions = as<E>(random_floats(s.sequence * s.width, seed + 2));
  for (const E* each : {positions.data(), static_cast<const E*>(nullptr)}) {
    std::vector<E> y = unwritten<E>(s.batch * s.sequence * s.width);
    std::vector<E> cpu_y = y;
    std::vector<std::int64_t> kept(tokens.size(), -1);
    cuda::embedding_forward(s, tokens.data(), kept.data(), table.data(), each, y.data(), nullptr);
    embedding_forward(s, tokens.data(), table.data(), each, cpu_y.data(), workers);
    EXPECT_TRUE(same_bits(y, cpu_y));
    EXPECT_EQ(kept, tokens);
  }
}

template <class E, class G>
void expect_backward_as_cpu(const EmbeddingShape& s, unsigned seed, bool of_table = true) {
  Workers workers(1);
  const std::vector<std::int64_t> tokens = tokens_of(s, seed);
  const std::vector<E> d_y = as<E>(random_floats(s.batch * s.sequence * s.width, seed + 1));
  std::vector<G> d_table = as<G>(random_floats(kVocabulary * s.width, seed + 2));
  std::vector<G> d_positions = as<G>(random_floats(s.sequence * s.width, seed + 3));
  std::vector<G> cpu_table = d_table;
  std::vector<G> cpu_positions = d_positions;
  std::vector<std::byte> workspace(static_cast<std::size_t>(cuda::embedding_backward_bytes(s)),
                                   std::byte{0xff});
  host_cuda::set_seed(seed);
  cuda::embedding_backward(s, tokens.data(), d_y.data(), of_table ? d_table.data() : nullptr,
                           d_positions.data(), workspace.data(), nullptr);
  embedding_backward(s, tokens.data(), d_y.data(), of_table ? cpu_table.data() : nullptr,
                     cpu_positions.data(), workers);
  EXPECT_TRUE(same_bits(d_table, cpu_table));
  EXPECT_TRUE(same_bits(d_positions, cpu_positions));
}

// Rows of vectors and not, more rows than a block sorts at once, and one row.
constexpr EmbeddingShape kShapes[] = {{3, 97, 16}, {2, 130, 7}, {1, 1, 24}};

TEST(CudaEmbedding, HasTheCpusBits) {
  for (const EmbeddingShape& shape : kShapes) {
    SCOPED_TRACE(shape.width);
    expect_forward_as_cpu<float>(shape, 1);
    expect_forward_as_cpu<Bf16>(shape, 2);
  }
}

TEST(CudaEmbeddingGradient, HasTheCpusBitsInEveryOrderOfThreads) {
  for (const EmbeddingShape& shape : kShapes) {
    if (host_cuda::races_are_watched() && shape.width == 7) continue;  // takes long
    SCOPED_TRACE(shape.width);
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      expect_backward_as_cpu<float, float>(shape, seed);
      expect_backward_as_cpu<Bf16, float>(shape, seed);
      expect_backward_as_cpu<Bf16, Bf16>(shape, seed);
    }
  }
}

TEST(CudaEmbeddingGradient, LeavesATableThatIsNotTrained) {
  expect_backward_as_cpu<Bf16, float>({2, 5, 8}, 1, false);
}

// Of more rows than two tiles hold.
TEST(CudaEmbeddingGradient, NeedsEachOfItsBarriers) {
  expect_every_barrier_is_needed([] { expect_backward_as_cpu<float, float>({1, 520, 1}, 1); });
}

}  // namespace
}  // namespace shardwise::exec
