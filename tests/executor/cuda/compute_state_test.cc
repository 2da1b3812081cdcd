// What of Compute moves tensors and updates a rank's state, on a GPU of fakes beside the CPU.
#include "tests/executor/cuda/beside_cpu.h"

namespace shardwise::exec::test {
namespace {

class CudaStateIn : public CudaComputeIn {};

TEST_P(CudaStateIn, ScalesAndUpdatesWithTheBitsOfTheCpu) {
  const Operation updates = [&](Compute& compute, Tensors& t) {
    float* const factor = t.of(std::vector<float>{0});
    compute.token_factor(
        {.tokens = t.of(std::vector<std::int64_t>{30, 0, 7}), .ranks = 3, .factor = factor},
        t.stream());
    const TensorView gradients = t.drawn(gradient(), 1003);
    compute.scale({.tensor = gradients, .factor = factor}, t.stream());
    const TensorView main = t.drawn(DType::fp32, 1003);
    const TensorView exp_avg = t.drawn(DType::fp32, 1003);
    const TensorView exp_avg_sq = t.drawn(DType::fp32, 1003);
    compute.clear(exp_avg_sq, t.stream());
    AdamStep step = adam_step({}, 3);
    step.gradient_scale = 0.5F;
    const std::vector<AdamShard> shards = {{.gradient = gradients,
                                            .main = main,
                                            .exp_avg = exp_avg,
                                            .exp_avg_sq = exp_avg_sq,
                                            .stored = t.drawn(dtype(), 1003),
                                            .decays = true}};
    compute.adamw({shards, t.of(std::vector<AdamStep>{step})}, t.stream());
  };
  expect_bits_of_cpu(updates);
}

TEST_P(CudaStateIn, MovesAndSumsWithTheBitsOfTheCpu) {
  const Operation moves = [&](Compute& compute, Tensors& t) {
    compute.clear(t.drawn(dtype(), 3001), t.stream());
    compute.cast(t.drawn(gradient(), 3001), t.drawn(dtype(), 3001), t.stream());
    compute.cast(t.drawn(dtype(), 3001), t.drawn(gradient(), 3001), t.stream());
    compute.accumulate(t.drawn(DType::fp32, 3001), t.drawn(dtype(), 3001), t.stream());
    for (const bool joins : {false, true}) {
      compute.sum_ranks({.pieces = t.drawn(gradient(), 3000),
                         .stride = 1000,
                         .ranks = 3,
                         .sums = {t.workspace(3996), 999, DType::fp32},
                         .shard = t.drawn(gradient(), 999),
                         .joins = joins},
                        t.stream());
    }
  };
  expect_bits_of_cpu(moves);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaStateIn, kAllTypes, name_of_types);

// Under the thread sanitizer streams are threads that only events order.
TEST(CudaCompute, MovesOnOneStreamBesidePassesOnAnother) {
  constexpr std::int64_t kCount = 700;
  constexpr std::int64_t kNormElements = 384;  // 16 rows of 24
  FakeGpu gpu(11, Products::own, std::int64_t{1} << 20);
  Compute& compute = gpu.compute();
  Tensors passes(gpu.device());
  Tensors moves(gpu.device());
  const TensorView sum = moves.drawn(DType::fp32, kCount);
  const TensorView each = moves.drawn(DType::bf16, kCount);
  compute.clear(sum, moves.stream());
  const NormShape shape = {16, 1, 24, 24, 24, 1e-5F};
  const std::byte* const x = passes.at(DType::fp32, kNormElements);
  const std::byte* const weight = passes.at(DType::fp32, 24);
  for (int i = 0; i < 3; ++i) {
    compute.accumulate(sum, each, moves.stream());
    compute.norm_backward({.shape = shape,
                           .x = x,
                           .weight = weight,
                           .statistics = passes.floats(16),
                           .d_y = passes.at(DType::fp32, kNormElements),
                           .d_x = passes.at(DType::fp32, kNormElements),
                           .d_weight = passes.at(DType::fp32, 24)},
                          passes.stream());
  }
  const std::vector<Floats> moved = moves.left();
  for (std::size_t i = 0; i < moved[0].size(); ++i) EXPECT_EQ(moved[0][i], 3 * moved[1][i]);
  for (const Floats& left : passes.left()) EXPECT_TRUE(std::isfinite(left.front()));
  EXPECT_THAT(FakeGpu::complaints(), testing::IsEmpty());
}

struct Norm {
  double value = 0;
  double clip_factor = 0;
  GradientCheckState checked;
};

/// Of the gradients of two ranks.
Norm norm_of_two_ranks(Device& device, Compute& compute) {
  Tensors t(device);
  const std::vector<ConstTensorView> tensors = {t.drawn(DType::fp32, 3001),
                                                t.drawn(DType::bf16, 77)};
  const std::vector<ConstTensorView> others = {t.drawn(DType::fp32, 5)};
  const std::int64_t bytes = compute.squares_bytes();
  std::byte* const sums = t.workspace(2 * bytes);
  auto* const norm = t.of(std::vector<double>{0});
  auto* const factor = t.of(std::vector<float>{0});
  auto* const state = t.of(std::vector<GradientCheckState>(1));
  compute.squares({tensors, sums}, t.stream());
  compute.squares({others, sums + bytes}, t.stream());
  compute.check_gradients({.rules = {true, true}, .sums = sums, .bucket = {4, 0}, .state = state},
                          t.stream());
  compute.squares_norm(
      {.sums = sums, .ranks = 2, .norm = norm, .clip_norm = 0.5, .clip_factor = factor},
      t.stream());
  return {t.taken(norm), t.taken(factor), t.taken(state)};
}

TEST(CudaCompute, TakesTheNormOfTheSquaresOfSeveralRanks) {
  Workers workers(1);
  CpuDevice device;
  CpuCompute compute(workers);
  const Norm exact = norm_of_two_ranks(device, compute);
  FakeGpu gpu(5, Products::own, 0);
  const Norm norm = norm_of_two_ranks(gpu.device(), gpu.compute());
  EXPECT_NEAR(norm.value, exact.value, 1e-14 * exact.value);
  EXPECT_NEAR(norm.clip_factor, exact.clip_factor, 1e-7);
  EXPECT_EQ(norm.checked.samples, 1);
  EXPECT_NEAR(norm.checked.largest, exact.checked.largest, 1e-14 * exact.value);
}

}  // namespace
}  // namespace shardwise::exec::test
