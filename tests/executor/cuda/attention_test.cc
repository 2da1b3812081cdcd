#include <gtest/gtest.h>

#include "executor/kernels/cuda/attention_cuda.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

/// One case with E's inputs, and what attention makes of them.
template <class E>
struct Case {
  Case(const AttentionShape& shape, unsigned seed)
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

/// Within what roundings to E lose of the largest: sums cancel.
template <class E>
void expect_near(const std::vector<E>& gpu, const std::vector<E>& cpu, const char* what) {
  expect_close(wide(gpu), doubles(wide(cpu)), tolerance<E>(), what);
}

template <class E>
void expect_as_cpu(const AttentionShape& shape, unsigned seed) {
  Case<E> gpu(shape, seed);
  Case<E> cpu(shape, seed);
  host_cuda::set_seed(seed);
  gpu.forward_on_gpu();
  cpu.forward_on_cpu();
  expect_near(gpu.out, cpu.out, "out");
  expect_near(gpu.log_sums, cpu.log_sums, "log_sums");
  gpu.out = cpu.out;  // the gradients of one forward
  gpu.log_sums = cpu.log_sums;
  gpu.backward_on_gpu();
  cpu.backward_on_cpu();
  expect_near(gpu.qkv, cpu.qkv, "d_qkv");
}

class CudaAttention : public testing::TestWithParam<AttentionShape> {};

TEST_P(CudaAttention, EqualsTheCpuForwardAndBackward) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_as_cpu<float>(GetParam(), seed);
    expect_as_cpu<Bf16>(GetParam(), seed);
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
    Case<float> one({1, 37, 2, 1, 8, 0}, 1);
    one.forward_on_gpu();
    one.backward_on_gpu();
    if (first.empty()) first = one.qkv;
    EXPECT_EQ(one.qkv, first);
  }
}

TEST(CudaAttentionKernels, NeedEachOfTheirBarriers) {
  const AttentionShape shape = {1, 20, 2, 1, 8, 0};
  expect_every_barrier_is_needed([&] { Case<float>(shape, 1).forward_on_gpu(); });
  Case<float> made(shape, 1);
  made.forward_on_gpu();
  expect_every_barrier_is_needed([&] { Case<float>(made).backward_on_gpu(); });
}

}  // namespace
}  // namespace shardwise::exec
