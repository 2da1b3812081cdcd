#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "executor/kernels/cuda/attention_cuda.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

/// One case with E's inputs, and what attention makes of them.
template <class E>
struct AttentionCase {
  AttentionCase(const AttentionShape& shape, unsigned seed)
      : s(shape),
        qkv(as<E>(random_floats(s.batch * s.sequence * s.qkv_width(), seed))),
        d_out(as<E>(random_floats(s.batch * s.sequence * s.heads * s.head_dim, seed + 1))),
        out(unwritten<E>(static_cast<std::int64_t>(d_out.size()))),
        log_sums(unwritten<float>(s.batch * s.heads * s.sequence)),
        workspace(unwritten<float>(attention_backward_bytes(s) / 4)) {
    for (E& each : qkv) each = from_float<E>(3 * to_float(each));  // so that softmaxes are not flat
  }
  void forward_on_gpu() {
    cuda::attention_forward(s, qkv.data(), out.data(), log_sums.data(), nullptr);
  }
  void forward_on_cpu() {
    Workers workers(1);
    attention_forward(s, qkv.data(), out.data(), log_sums.data(), workers);
  }
  void backward_on_gpu() {
    cuda::attention_backward(s, qkv.data(), out.data(), log_sums.data(), d_out.data(),
                             workspace.data(), nullptr);
  }
  void backward_on_cpu() {
    Workers workers(1);
    attention_backward(s, qkv.data(), out.data(), log_sums.data(), d_out.data(), workspace.data(),
                       workers);
  }

  AttentionShape s;
  std::vector<E> qkv;
  std::vector<E> d_out;
  std::vector<E> out;
  Floats log_sums;
  Floats workspace;
};

/// Within what roundings to E lose of the largest: sums cancel. Tensor cores have p and gradients
/// of scores rounded too, as the CPU has not.
template <class E>
void expect_near_attention(const std::vector<E>& gpu, const std::vector<E>& cpu, const char* what) {
  expect_close(wide(gpu), doubles(wide(cpu)), sizeof(E) == 2 ? kBf16Tolerance : tolerance<E>(),
               what);
}

template <class E>
void expect_attention_as_cpu(const AttentionShape& shape, unsigned seed) {
  AttentionCase<E> gpu(shape, seed);
  AttentionCase<E> cpu(shape, seed);
  host_cuda::set_seed(seed);
  gpu.forward_on_gpu();
  cpu.forward_on_cpu();
  expect_near_attention(gpu.out, cpu.out, "out");
  expect_near_attention(gpu.log_sums, cpu.log_sums, "log_sums");
  gpu.out = cpu.out;  // the gradients of one forward
  gpu.log_sums = cpu.log_sums;
  gpu.backward_on_gpu();
  cpu.backward_on_cpu();
  expect_near_attention(gpu.qkv, cpu.qkv, "d_qkv");
}

class CudaAttention : public testing::TestWithParam<AttentionShape> {};

TEST_P(CudaAttention, EqualsTheCpuForwardAndBackward) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_attention_as_cpu<float>(GetParam(), seed);
    expect_attention_as_cpu<Bf16>(GetParam(), seed);
  }
}

// batch, sequence, heads, kv_heads, head_dim, window: one key, tiles and parts of them, groups of
// heads, windows within a tile and over several, heads of each kind of tiles.
INSTANTIATE_TEST_SUITE_P(
    Kinds, CudaAttention,
    testing::Values(AttentionShape{1, 1, 1, 1, 8, 0}, AttentionShape{2, 32, 2, 2, 16, 0},
                    AttentionShape{1, 37, 4, 2, 12, 0}, AttentionShape{1, 45, 2, 1, 8, 5},
                    AttentionShape{1, 50, 3, 1, 64, 33}, AttentionShape{1, 19, 2, 1, 80, 0},
                    AttentionShape{1, 19, 1, 1, 136, 9}));

TEST(CudaAttentionGradients, HaveTheSameBitsInEveryOrderOfThreads) {
  Floats first;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    host_cuda::set_seed(seed);
    AttentionCase<float> one({1, 37, 2, 1, 8, 0}, 1);
    one.forward_on_gpu();
    one.backward_on_gpu();
    if (first.empty()) first = one.qkv;
    EXPECT_EQ(one.qkv, first);
  }
}

TEST(CudaAttentionKernels, NeedEachOfTheirBarriers) {
  const AttentionShape shape = {1, 20, 2, 1, 8, 0};
  expect_every_barrier_is_needed([&] { AttentionCase<float>(shape, 1).forward_on_gpu(); });
  AttentionCase<float> made(shape, 1);
  made.forward_on_gpu();
  expect_every_barrier_is_needed([&] { AttentionCase<float>(made).backward_on_gpu(); });
}

constexpr double kRounding = 1.0 / 256;  // to bf16, of its number

/// A tensor by its definition in double, and what roundings to bf16 may lose of each number.
struct Bounded {
  explicit Bounded(std::size_t count) : value(count), lost(count) {}
  /// A term of a sum, and the part of it that was rounded before it was added.
  void add(std::size_t at, double term, double rounded) {
    value[at] += term;
    lost[at] += kRounding * std::abs(rounded);
  }

  Doubles value;
  Doubles lost;  // before the number itself is rounded
};

void expect_within(const std::vector<Bf16>& actual, const Bounded& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.value.size()) << what;
  double largest = 0;
  for (const double each : expected.value) largest = std::max(largest, std::abs(each));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double wanted = expected.value[i];
    ASSERT_NEAR(static_cast<double>(to_float(actual[i])), wanted,
                expected.lost[i] + kRounding * (std::abs(wanted) + expected.lost[i]) +
                    kFp32Tolerance * largest)
        << what << " at " << i;
  }
}

/// Attention and its gradients in double. Of the terms of its sums these are rounded: p, gradients
/// of scores, and out in the deltas that those are made of.
class Defined {
 public:
  explicit Defined(const AttentionCase<Bf16>& c)
      : out(c.d_out.size()),
        log_sums(c.log_sums.size()),
        d_qkv(c.qkv.size()),
        s_(c.s),
        qkv_(doubles(wide(c.qkv))),
        d_out_(doubles(wide(c.d_out))) {
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      for (std::int64_t head = 0; head < s_.heads; ++head) {
        for (std::int64_t query = 0; query < s_.sequence; ++query) row(b, head, query);
      }
    }
  }

  Bounded out;
  Doubles log_sums;
  Bounded d_qkv;

 private:
  void row(std::int64_t b, std::int64_t head, std::int64_t query) {
    const std::int64_t first = s_.window > 0 ? std::max<std::int64_t>(0, query - s_.window + 1) : 0;
    const auto keys = static_cast<std::size_t>(query - first + 1);
    const std::int64_t kv = s_.heads + head / (s_.heads / s_.kv_heads);
    const double scale = 1 / std::sqrt(static_cast<double>(s_.head_dim));
    const std::size_t q = place(b, query, head);
    const std::int64_t row_of_out = (b * s_.sequence + query) * s_.heads + head;
    const auto o = static_cast<std::size_t>(row_of_out * s_.head_dim);
    const auto dim = static_cast<std::size_t>(s_.head_dim);
    Doubles p(keys);
    double sum = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      const std::size_t k = place(b, first + static_cast<std::int64_t>(j), kv);
      for (std::size_t i = 0; i < dim; ++i) p[j] += scale * qkv_[q + i] * qkv_[k + i];
      sum += std::exp(p[j]);
    }
    log_sums[static_cast<std::size_t>((b * s_.heads + head) * s_.sequence + query)] = std::log(sum);
    for (std::size_t j = 0; j < keys; ++j) {
      p[j] = std::exp(p[j]) / sum;
      const std::size_t v = place(b, first + static_cast<std::int64_t>(j), kv + s_.kv_heads);
      for (std::size_t i = 0; i < dim; ++i) {
        out.add(o + i, p[j] * qkv_[v + i], p[j] * qkv_[v + i]);
      }
    }
    double delta = 0;
    double lost = 0;  // of delta, in roundings
    for (std::size_t i = 0; i < dim; ++i) {
      delta += out.value[o + i] * d_out_[o + i];
      lost += (std::abs(out.value[o + i]) + out.lost[o + i] / kRounding) * std::abs(d_out_[o + i]);
    }
    for (std::size_t j = 0; j < keys; ++j) {
      const std::size_t k = place(b, first + static_cast<std::int64_t>(j), kv);
      const std::size_t v = place(b, first + static_cast<std::int64_t>(j), kv + s_.kv_heads);
      double d_p = 0;
      for (std::size_t i = 0; i < dim; ++i) d_p += d_out_[o + i] * qkv_[v + i];
      const double d_score = p[j] * (d_p - delta) * scale;
      const double rounded = std::abs(d_score) + p[j] * lost * scale;
      for (std::size_t i = 0; i < dim; ++i) {
        d_qkv.add(v + i, p[j] * d_out_[o + i], p[j] * d_out_[o + i]);
        d_qkv.add(q + i, d_score * qkv_[k + i], rounded * qkv_[k + i]);
        d_qkv.add(k + i, d_score * qkv_[q + i], rounded * qkv_[q + i]);
      }
    }
  }
  std::size_t place(std::int64_t b, std::int64_t token, std::int64_t head) const {
    return static_cast<std::size_t>((b * s_.sequence + token) * s_.qkv_width() +
                                    head * s_.head_dim);
  }

  AttentionShape s_;
  Doubles qkv_;
  Doubles d_out_;
};

class TensorCoreAttention : public testing::TestWithParam<AttentionShape> {};

TEST_P(TensorCoreAttention, EqualsItsDefinition) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    host_cuda::set_seed(seed);
    AttentionCase<Bf16> made(GetParam(), seed);
    const Defined defined(made);
    made.forward_on_gpu();
    expect_within(made.out, defined.out, "out");
    expect_close(made.log_sums, defined.log_sums, kFp32Tolerance, "log_sums");
    made.backward_on_gpu();
    expect_within(made.qkv, defined.d_qkv, "d_qkv");
  }
}

// One key, a tile and a token more, several tiles of queries, groups of heads, windows of one
// token, within a tile and over several, and one that is longer than the sequence; each head_dim.
INSTANTIATE_TEST_SUITE_P(
    Kinds, TensorCoreAttention,
    testing::Values(AttentionShape{1, 1, 1, 1, 64, 0}, AttentionShape{2, 33, 2, 1, 64, 0},
                    AttentionShape{1, 150, 1, 1, 64, 0}, AttentionShape{1, 150, 2, 1, 64, 70},
                    AttentionShape{1, 64, 1, 1, 80, 1}, AttentionShape{1, 70, 3, 1, 80, 0},
                    AttentionShape{1, 96, 1, 1, 96, 100}, AttentionShape{1, 70, 2, 2, 96, 0},
                    AttentionShape{2, 65, 2, 1, 128, 0}, AttentionShape{1, 140, 1, 1, 128, 33}));

TEST(TensorCoreAttention, HasTheSameBitsInEveryOrderOfThreads) {
  std::vector<Floats> first;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    host_cuda::set_seed(seed);
    AttentionCase<Bf16> one({1, 70, 2, 1, 64, 0}, 1);
    one.forward_on_gpu();
    const Floats out = wide(one.out);
    one.backward_on_gpu();
    const std::vector<Floats> made = {out, one.log_sums, wide(one.qkv)};
    if (first.empty()) first = made;
    EXPECT_EQ(made, first);
  }
}

TEST(TensorCoreAttention, NeedsEachOfItsBarriers) {
  // Two heads, so that keys' gradients have two tiles of queries.
  const AttentionShape shape = {1, 20, 2, 1, 64, 0};
  expect_every_barrier_is_needed([&] {
    AttentionCase<Bf16>({1, 70, 1, 1, 64, 0}, 1).forward_on_gpu();
  });
  AttentionCase<Bf16> made(shape, 1);
  made.forward_on_gpu();
  expect_every_barrier_is_needed([&] { AttentionCase<Bf16>(made).backward_on_gpu(); });
}

/// Whether all that was launched, but for passes without products, has tiles for tensor cores.
template <class E>
int launches_with_tiles(const AttentionShape& s, std::int64_t beside) {
  AttentionCase<E> made(s, 1);
  made.qkv.resize(made.qkv.size() + static_cast<std::size_t>(beside));
  int with_tiles = 0;
  host_cuda::set_enqueue([&](cudaStream_t, const char* name, dim3 grid, dim3 block,
                             std::size_t shared_bytes, const std::function<void()>& thread) {
    with_tiles += shared_bytes > 0 ? 1 : 0;
    host_cuda::run_grid(grid, block, shared_bytes, thread, name);
    return static_cast<const char*>(nullptr);
  });
  cuda::attention_forward(s, made.qkv.data() + beside, made.out.data(), made.log_sums.data(),
                          nullptr);
  cuda::attention_backward(s, made.qkv.data() + beside, made.out.data(), made.log_sums.data(),
                           made.d_out.data(), made.workspace.data(), nullptr);
  host_cuda::set_enqueue({});
  return with_tiles;
}

TEST(TensorCoreAttention, IsForBf16OfFourHeadDimsAtAddressesThat16Divides) {
  if (kOnGpu) GTEST_SKIP() << "launches are not told of on a GPU";
  for (const std::int64_t head_dim : {64, 80, 96, 128}) {
    EXPECT_EQ(launches_with_tiles<Bf16>({1, 5, 1, 1, head_dim, 0}, 0), 3) << head_dim;
  }
  EXPECT_EQ(launches_with_tiles<Bf16>({1, 5, 1, 1, 72, 0}, 0), 0);
  EXPECT_EQ(launches_with_tiles<Bf16>({1, 5, 1, 1, 160, 0}, 0), 0);
  EXPECT_EQ(launches_with_tiles<Bf16>({1, 5, 1, 1, 64, 0}, 4), 0);
  EXPECT_EQ(launches_with_tiles<float>({1, 5, 1, 1, 64, 0}, 0), 0);
}

}  // namespace
}  // namespace shardwise::exec
