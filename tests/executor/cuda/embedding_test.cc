#include "executor/kernels/cuda/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "planner/cost/kernels/gpu_workspace.h"
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

/// Against the definition in double: tokens of more rows than a segment has. Tokens from the first
/// on have these counts of rows, which lie among those of others.
template <class E, class G>
void expect_long_runs(const std::vector<int>& counts, std::int64_t width, unsigned seed) {
  std::vector<std::int64_t> tokens;
  for (std::size_t token = 0; token < counts.size(); ++token) {
    tokens.insert(tokens.end(), static_cast<std::size_t>(counts[token]),
                  static_cast<std::int64_t>(token));
  }
  std::mt19937 draw(seed);
  std::shuffle(tokens.begin(), tokens.end(), draw);
  const EmbeddingShape s = {1, std::ssize(tokens), width};
  const std::vector<E> d_y = as<E>(random_floats(s.sequence * width, seed + 1));
  std::vector<G> d_table = as<G>(random_floats(std::ssize(counts) * width, seed + 2));
  Doubles expected = doubles(wide(d_table));
  for (std::size_t i = 0; i < d_y.size(); ++i) {
    const auto n = static_cast<std::size_t>(width);
    expected[static_cast<std::size_t>(tokens[i / n]) * n + i % n] += to_float(d_y[i]);
  }
  std::vector<G> again = d_table;
  for (std::vector<G>* const table : {&d_table, &again}) {
    std::vector<std::byte> workspace(static_cast<std::size_t>(cuda::embedding_backward_bytes(s)),
                                     std::byte{0xff});
    host_cuda::set_seed(seed++);
    cuda::embedding_backward(s, tokens.data(), d_y.data(), table->data(), static_cast<G*>(nullptr),
                             workspace.data(), nullptr);
  }
  EXPECT_TRUE(same_bits(d_table, again)) << "in another order of threads";
  expect_close(wide(d_table), expected, tolerance<G>(), "d_table");
}

// One run of all rows; runs of a segment and of one row more or less; long ones side by side.
TEST(CudaEmbeddingGradient, AddsLongRunsOfATokenBySegments) {
  if (host_cuda::races_are_watched()) {
    return expect_long_runs<float, float>({1, 2 * static_cast<int>(kEmbeddingSegment) + 1}, 4, 1);
  }
  const auto segment = static_cast<int>(kEmbeddingSegment);
  const std::vector<int> all[] = {{5 * segment},
                                  {segment, segment + 1, segment - 1, 1},
                                  {3, segment + 1, segment + 1, 2 * segment + 1, 3 * segment, 2}};
  unsigned seed = 1;
  for (const std::vector<int>& counts : all) {
    SCOPED_TRACE(seed);
    expect_long_runs<float, float>(counts, 8, seed);
    expect_long_runs<Bf16, float>(counts, 5, seed + 1);
    expect_long_runs<Bf16, Bf16>(counts, 8, seed + 2);
    seed += 10;
  }
}

// Ones are lost beside 2^24: those of its own segment are, those of three others are not.
TEST(CudaEmbeddingGradient, AddsASegmentsRowsBeforeTheyJoinThoseOfOthers) {
  const EmbeddingShape s = {1, 4 * kEmbeddingSegment, 4};
  const std::vector<std::int64_t> tokens(static_cast<std::size_t>(s.sequence), 0);
  Floats d_y(static_cast<std::size_t>(s.sequence * s.width), 1.0F);
  std::fill_n(d_y.begin(), s.width, 0x1p24F);
  Floats d_table(static_cast<std::size_t>(s.width), 0.0F);
  std::vector<std::byte> workspace(static_cast<std::size_t>(cuda::embedding_backward_bytes(s)),
                                   std::byte{0xff});
  cuda::embedding_backward(s, tokens.data(), d_y.data(), d_table.data(),
                           static_cast<float*>(nullptr), workspace.data(), nullptr);
  EXPECT_EQ(d_table, Floats(4, 0x1p24F + 3 * static_cast<float>(kEmbeddingSegment)));
}

// Of more rows than two tiles hold.
TEST(CudaEmbeddingGradient, NeedsEachOfItsBarriers) {
  expect_every_barrier_is_needed([] { expect_backward_as_cpu<float, float>({1, 520, 1}, 1); });
}

}  // namespace
}  // namespace shardwise::exec
