#include "executor/kernels/cuda/operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/swiglu.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

Floats times(Floats values, float factor) {
  for (float& each : values) each *= factor;
  return values;
}

template <class E>
void expect_gelu_as_cpu(Gelu kind, std::int64_t count, unsigned seed) {
  Workers workers(1);
  host_cuda::set_seed(seed);
  const std::vector<E> x = as<E>(times(random_floats(count, seed), 6));
  const std::vector<E> d_y = as<E>(random_floats(count, seed + 1));
  std::vector<E> y = unwritten<E>(count);
  std::vector<E> cpu_y = y;
  cuda::gelu_forward(kind, count, x.data(), y.data(), nullptr);
  gelu_forward(kind, count, x.data(), cpu_y.data(), workers);
  expect_near_cpu(y, cpu_y, "y");
  std::vector<E> d_x = x;  // in place
  std::vector<E> cpu_d_x = x;
  cuda::gelu_backward(kind, count, d_x.data(), d_y.data(), d_x.data(), nullptr);
  gelu_backward(kind, count, cpu_d_x.data(), d_y.data(), cpu_d_x.data(), workers);
  expect_near_cpu(d_x, cpu_d_x, "d_x");
}

TEST(CudaGelu, EqualsTheCpuForAnyCount) {
  for (const std::int64_t count : {1, 8, 515}) {
    for (const Gelu kind : {Gelu::tanh, Gelu::erf}) {
      expect_gelu_as_cpu<float>(kind, count, 1);
      expect_gelu_as_cpu<Bf16>(kind, count, 2);
    }
  }
}

TEST(CudaGelu, IsItselfFarFromZero) {
  const Floats x = {-100, 0, 100};
  Floats y = unwritten<float>(3);
  cuda::gelu_forward(Gelu::tanh, 3, x.data(), y.data(), nullptr);
  EXPECT_EQ(y, (Floats{0, 0, 100}));
}

template <class E>
void expect_swiglu_as_cpu(std::int64_t rows, std::int64_t width, unsigned seed) {
  Workers workers(1);
  host_cuda::set_seed(seed);
  std::vector<E> gate_up = as<E>(times(random_floats(rows * 2 * width, seed), 6));
  std::vector<E> cpu_gate_up = gate_up;
  const std::vector<E> d_y = as<E>(random_floats(rows * width, seed + 1));
  std::vector<E> y = unwritten<E>(rows * width);
  std::vector<E> cpu_y = y;
  cuda::swiglu_forward(rows, width, gate_up.data(), y.data(), nullptr);
  swiglu_forward(rows, width, gate_up.data(), cpu_y.data(), workers);
  expect_near_cpu(y, cpu_y, "y");
  cuda::swiglu_backward(rows, width, gate_up.data(), d_y.data(), nullptr);
  swiglu_backward(rows, width, cpu_gate_up.data(), d_y.data(), workers);
  expect_near_cpu(gate_up, cpu_gate_up, "d_gate_up");
}

TEST(CudaSwiglu, EqualsTheCpuForAnyWidth) {
  for (const std::int64_t width : {16, 7, 344}) {
    SCOPED_TRACE(width);
    expect_swiglu_as_cpu<float>(3, width, 1);
    expect_swiglu_as_cpu<Bf16>(3, width, 2);
  }
}

template <class E>
void expect_rope_as_cpu(const RopeShape& shape, unsigned seed) {
  Workers workers(1);
  host_cuda::set_seed(seed);
  const std::int64_t half = shape.head_dim / 2;
  const Doubles frequency = doubles(random_floats(half, seed));
  Floats cosines = unwritten<float>(shape.sequence * half);
  Floats sines = cosines;
  rope_tables(shape.sequence, shape.head_dim, frequency.data(), cosines.data(), sines.data());
  const RopeTables tables = {cosines.data(), sines.data()};
  std::vector<E> x = as<E>(random_floats(shape.batch * shape.sequence * shape.stride, seed + 1));
  std::vector<E> cpu_x = x;
  cuda::rope_forward(shape, tables, x.data(), nullptr);
  rope_forward(shape, tables, cpu_x.data(), workers);
  expect_near_cpu(x, cpu_x, "rotated");
  cpu_x = x;
  cuda::rope_backward(shape, tables, x.data(), nullptr);
  rope_backward(shape, tables, cpu_x.data(), workers);
  expect_near_cpu(x, cpu_x, "rotated back");
}

TEST(CudaRope, EqualsTheCpuAndLeavesWhatLiesBesideTheHeads) {
  for (const std::int64_t head_dim : {16, 6}) {
    SCOPED_TRACE(head_dim);
    expect_rope_as_cpu<float>({2, 5, 3, head_dim, 3 * head_dim + 16}, 1);
    expect_rope_as_cpu<Bf16>({2, 5, 3, head_dim, 3 * head_dim + 16}, 2);
  }
}

/// At the positions of long contexts, and where cosine or sine is next to nothing.
TEST(CudaRopeTables, AreTheCpusOrItsNeighbours) {
  const std::int64_t sequence = 3000;
  Doubles frequencies = {1, 0.0123456789, 710.0 / 113 / 4, 131071.0 / 2999, 1e-9, 0};
  for (const float each : random_floats(58, 7)) frequencies.push_back((each + 1) * 1e5);
  const auto half = std::ssize(frequencies);
  Floats cosines = unwritten<float>(sequence * half);
  Floats sines = cosines;
  Floats cpu_cosines = cosines;
  Floats cpu_sines = cosines;
  cuda::rope_tables(sequence, frequencies, cosines.data(), sines.data(), nullptr);
  rope_tables(sequence, 2 * half, frequencies.data(), cpu_cosines.data(), cpu_sines.data());
  const auto expect_next = [](float actual, float cpu, std::size_t at) {
    ASSERT_TRUE(std::nextafter(cpu, -2.0F) <= actual && actual <= std::nextafter(cpu, 2.0F))
        << actual << " for " << cpu << " at " << at;
  };
  for (std::size_t i = 0; i < cosines.size(); ++i) {
    expect_next(cosines[i], cpu_cosines[i], i);
    expect_next(sines[i], cpu_sines[i], i);
  }
}

/// \param beside  elements from the vocabulary's end to the next row
/// \param impose  on the logits of a row
template <class E>
void expect_losses_as_cpu(std::int64_t vocabulary, unsigned seed, std::int64_t beside = 0,
                          const std::function<void(float* row)>& impose = {}) {
  Workers workers(1);
  host_cuda::set_seed(seed);
  const std::vector<std::int64_t> targets = {0, kIgnored, vocabulary - 1, vocabulary / 2};
  const auto rows = static_cast<std::int64_t>(targets.size());
  const std::int64_t stride = vocabulary + beside;
  const Floats scale(1, 0.375F);
  Floats drawn = times(random_floats(rows * vocabulary, seed), 20);
  if (impose) {
    for (std::int64_t row = 0; row < rows; ++row) impose(drawn.data() + row * vocabulary);
  }
  std::vector<E> cpu_logits = as<E>(drawn);
  std::vector<E> logits = unwritten<E>(rows * stride);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(cpu_logits.begin() + row * vocabulary, vocabulary, logits.begin() + row * stride);
  }
  Floats losses = unwritten<float>(rows);
  Floats cpu_losses = losses;
  cuda::loss_rows(rows, vocabulary, stride, targets.data(), scale.data(), logits.data(),
                  losses.data(), nullptr);
  loss_rows(rows, vocabulary, targets.data(), scale.front(), cpu_logits.data(), cpu_losses.data(),
            workers);
  std::vector<E> gradients;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = logits.begin() + row * stride;
    gradients.insert(gradients.end(), begin, begin + vocabulary);
  }
  expect_near_cpu(losses, cpu_losses, "losses");
  expect_near_cpu(gradients, cpu_logits, "gradients");
}

TEST(CudaLossRows, EqualTheCpuForAnyVocabulary) {
  for (const std::int64_t vocabulary : {3, 61, 2080, 2311}) {
    SCOPED_TRACE(vocabulary);
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      expect_losses_as_cpu<float>(vocabulary, seed);
      expect_losses_as_cpu<Bf16>(vocabulary, seed + 10);
    }
  }
}

// 50257 is no multiple of anything: rows begin at multiples of 64.
TEST(CudaLossRows, LeaveOutWhatLiesBetweenTheVocabularyAndTheNextRow) {
  for (const std::int64_t vocabulary : {1, 61, 129, 2311}) {
    SCOPED_TRACE(vocabulary);
    const std::int64_t beside = (vocabulary + 63) / 64 * 64 - vocabulary;
    expect_losses_as_cpu<float>(vocabulary, 1, beside);
    expect_losses_as_cpu<Bf16>(vocabulary, 2, beside);
    expect_losses_as_cpu<Bf16>(vocabulary, 3, 3);  // no vector reads these
  }
}

// Masked logits are -inf: the first of a thread's, some between others, and all of a thread's.
TEST(CudaLossRows, TakeLogitsOfMinusInfinityForNoChance) {
  for (const std::vector<int>& masked :
       {std::vector<int>{1}, {2, 7, 9}, {1, 257, 513}, {16, 17, 18, 19, 20, 21, 22, 23}}) {
    const auto impose = [&](float* row) {
      for (const int at : masked) row[at] = -INFINITY;
    };
    expect_losses_as_cpu<float>(601, 1, 0, impose);
    expect_losses_as_cpu<Bf16>(600, 2, 0, impose);
  }
}

// A run is ended by its loss: it has to say what the gradients have.
template <class E>
void expect_loss_is_no_number(std::int64_t vocabulary, std::int64_t at) {
  const std::vector<std::int64_t> targets = {3, 3};
  const Floats scale(1, 1.0F);
  std::vector<E> logits = as<E>(random_floats(2 * vocabulary, 1));
  logits[static_cast<std::size_t>(at)] = from_float<E>(NAN);
  Floats losses = unwritten<float>(2);
  cuda::loss_rows(2, vocabulary, vocabulary, targets.data(), scale.data(), logits.data(),
                  losses.data(), nullptr);
  EXPECT_TRUE(std::isnan(losses.front())) << losses.front();
  EXPECT_TRUE(std::isfinite(losses.back()));
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    const auto place = static_cast<std::size_t>(i);
    ASSERT_TRUE(std::isnan(to_float(logits[place]))) << i;
    ASSERT_TRUE(std::isfinite(to_float(logits[place + static_cast<std::size_t>(vocabulary)]))) << i;
  }
}

TEST(CudaLossRows, HaveNoNumberForALossWithALogitThatIsNone) {
  for (const std::int64_t vocabulary : {61, 4800}) {
    for (const std::int64_t at :
         {std::int64_t{0}, std::int64_t{3}, std::int64_t{17}, vocabulary - 1}) {
      SCOPED_TRACE(testing::Message() << at << " of " << vocabulary);
      expect_loss_is_no_number<float>(vocabulary, at);
      expect_loss_is_no_number<Bf16>(vocabulary, at);
    }
  }
}

void expect_sum_of_losses(std::int64_t rows, unsigned seed) {
  host_cuda::set_seed(seed);
  const Floats losses = times(random_floats(rows, seed), 9);
  const Floats drawn = random_floats(rows, seed + 1);
  std::vector<std::int64_t> targets;
  LossSum expected = {1000.5, 3};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    targets.push_back(drawn[i] < 0 ? kIgnored : 5);
    if (targets.back() == kIgnored) continue;
    expected.loss += static_cast<double>(losses[i]);
    ++expected.tokens;
  }
  std::vector<LossSum> loss = {{1000.5, 3}};
  std::vector<std::byte> workspace(static_cast<std::size_t>(cuda::sum_losses_bytes()));
  cuda::sum_losses(rows, targets.data(), losses.data(), loss.data(), workspace.data(), nullptr);
  EXPECT_NEAR(loss.front().loss, expected.loss, 1e-9) << rows;
  EXPECT_EQ(loss.front().tokens, expected.tokens) << rows;
}

TEST(CudaLossSum, AddsLossesInDoubleAndCountsTokensThatAreNotIgnored) {
  for (const std::int64_t rows : {1, 31, 256, 1000, 40'000}) {
    if (rows > 1000 && host_cuda::races_are_watched()) continue;  // takes long
    expect_sum_of_losses(rows, 1);
  }
}

TEST(CudaLossSum, NeedsItsBarrier) {
  expect_every_barrier_is_needed([] { expect_sum_of_losses(300, 1); });
}

TEST(CudaLossRows, NeedEachOfTheirBarriers) {
  expect_every_barrier_is_needed([] { expect_losses_as_cpu<float>(61, 1); });
}

}  // namespace
}  // namespace shardwise::exec
