// Norms of gradients and AdamW on a GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "executor/kernels/compute/cpu_compute.h"
#include "executor/kernels/cuda/movement.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

// Squares take kSquareParts blocks whatever the size.
constexpr std::int64_t kThreadsOfSquares = 512LL * 256;

using Parts = std::vector<double>;

/// The norm of the tensors of all ranks.
double squares_norm_of(const std::vector<std::vector<ConstTensorView>>& ranks) {
  Parts parts(ranks.size() * cuda::kSquareParts, NAN);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    auto* const sums = reinterpret_cast<std::byte*>(parts.data()) +
                       static_cast<std::int64_t>(r) * cuda::squares_bytes();
    cuda::squares({ranks[r], sums}, nullptr);
  }
  Parts norm(1, NAN);
  cuda::squares_norm({reinterpret_cast<const std::byte*>(parts.data()),
                      static_cast<std::int64_t>(ranks.size()), norm.data()},
                     nullptr);
  return norm.front();
}

ConstTensorView view_of(const std::vector<Bf16>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size(), DType::bf16};
}

TEST(CudaSquares, GiveTheExactNormOfAllRanks) {
  const std::int64_t large = host_cuda::races_are_watched() ? 3001 : 4 * kThreadsOfSquares + 4099;
  const Floats a = random_floats(large, 1);
  const std::vector<Bf16> b = as<Bf16>(random_floats(1003, 2));
  const Floats c = random_floats(5, 3);
  const ConstTensorView odd = ConstTensorView(a).part(1, 300);
  long double expected = 0;
  const auto add = [&](float each) { expected += static_cast<long double>(each) * each; };
  for (const float each : a) add(each);
  for (const Bf16 each : b) add(to_float(each));
  for (const float each : c) add(each);
  for (const float each : odd.floats()) add(each);
  const double norm = squares_norm_of({{a, view_of(b)}, {c, odd}});
  const double exact = static_cast<double>(std::sqrt(expected));
  EXPECT_NEAR(norm, exact, 1e-14 * exact);
}

TEST(CudaSquares, HaveTheSameBitsInEveryOrderOfThreads) {
  if (host_cuda::races_are_watched()) GTEST_SKIP() << "takes long, and shows nothing more";
  const Floats a = random_floats(200'000, 1);
  double first = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    host_cuda::set_seed(seed);
    const double norm = squares_norm_of({{a}});
    if (seed == 1) first = norm;
    EXPECT_EQ(norm, first);
  }
}

TEST(CudaSquares, TakeMoreTensorsThanALaunchDoes) {
  if (host_cuda::races_are_watched()) GTEST_SKIP() << "takes long, and shows nothing more";
  const Floats ones(130, 1.0F);
  std::vector<ConstTensorView> each;
  for (std::size_t i = 0; i < ones.size(); ++i) each.push_back(ConstTensorView(ones).part(i, 1));
  EXPECT_EQ(squares_norm_of({each}), std::sqrt(130.0));
  EXPECT_EQ(squares_norm_of({{}}), 0);
}

TEST(CudaSquares, AreNotFiniteAsSoonAsOneValueIsNot) {
  if (host_cuda::races_are_watched()) GTEST_SKIP() << "takes long, and shows nothing more";
  Floats values(2000, 3e38F);
  EXPECT_TRUE(std::isfinite(squares_norm_of({{values}})));
  values[777] = -INFINITY;
  EXPECT_TRUE(std::isinf(squares_norm_of({{values}})));
  values[1999] = NAN;
  EXPECT_TRUE(std::isnan(squares_norm_of({{values}})));
}

TEST(CudaSquares, NeedTheirBarriers) {
  Parts parts(cuda::kSquareParts, 1.0);
  double norm = 0;
  expect_every_barrier_is_needed([&] {
    cuda::squares_norm({reinterpret_cast<const std::byte*>(parts.data()), 1, &norm}, nullptr);
  });
  EXPECT_EQ(host_cuda::races_are_watched() ? norm : std::sqrt(512.0), std::sqrt(512.0));
}

TEST(CudaSquares, GiveTheFactorThatClips) {
  const Parts parts(cuda::kSquareParts, 2.0);  // a norm of 32
  const auto factor_of = [&](double clip_norm) {
    Parts norm(1, NAN);
    Floats factor(1, NAN);
    cuda::squares_norm({reinterpret_cast<const std::byte*>(parts.data()), 1, norm.data(), clip_norm,
                        factor.data()},
                       nullptr);
    EXPECT_EQ(norm.front(), 32);
    return factor.front();
  };
  EXPECT_EQ(factor_of(24), 0.75F);
  EXPECT_EQ(factor_of(32), 1);
  EXPECT_EQ(factor_of(0), 1);
  EXPECT_EQ(factor_of(0.3), static_cast<float>(0.3 / 32));
}

TEST(CudaSquares, AreCheckedAsOnTheCpu) {
  std::vector<GradientCheckState> found(1);
  GradientCheckState& state = found.front();
  GradientCheckState cpu;
  const auto check = [&](double norm, std::int64_t number) {
    const GradientBucket bucket = {number, 11};
    Parts parts(cuda::kSquareParts, 0.0);
    parts[300] = norm * norm;
    const GradientCheckRules rules = {true, true};
    cuda::check_gradients({rules, reinterpret_cast<const std::byte*>(parts.data()), bucket, &state},
                          nullptr);
    check_gradients(rules, norm, bucket, cpu);
    EXPECT_EQ(state.largest, cpu.largest);
    EXPECT_EQ(state.samples, cpu.samples);
    EXPECT_EQ(state.bucket, cpu.bucket);
    EXPECT_EQ(state.operation, cpu.operation);
  };
  state.samples = cpu.samples = 98;
  for (const double norm : {2.0, 50.0, 8.0, 80.0, 500.0, 800.0}) check(norm, 3);
  EXPECT_EQ(state.bucket, -1);
  check(8001, 4);
  check(NAN, 5);
  EXPECT_EQ(state.bucket, 4);
  EXPECT_EQ(state.norm, 8001);
  state = cpu = {};
  check(INFINITY, 7);
  EXPECT_EQ(state.bucket, 7);
  EXPECT_TRUE(std::isinf(state.norm));
}

/// What AdamW updates of one tensor.
struct Weights {
  Weights(std::int64_t count, DType gradient_type, DType stored_type, unsigned seed)
      : gradient(random_floats(count, seed)),
        narrow_gradient(as<Bf16>(gradient)),
        main(random_floats(count, seed + 1)),
        exp_avg(random_floats(count, seed + 2)),
        exp_avg_sq(random_floats(count, seed + 3)),
        stored(static_cast<std::size_t>(count * bytes_of(stored_type)), std::byte{0xff}),
        gradient_dtype(gradient_type),
        stored_dtype(stored_type) {
    for (float& each : exp_avg_sq) each *= each;
  }
  /// Some weights half way between two bf16 numbers, all in halves.
  void halve() {
    for (std::size_t i = 0; i < main.size(); i += 3) {
      main[i] = std::bit_cast<float>((std::bit_cast<std::uint32_t>(main[i]) & ~0xffffU) | 0x8000U);
    }
    cast({stored.data(), main.size(), DType::bf16}, main);
    remainders.resize(main.size());
    split_weights(main, remainders, exp_avg_sq);
  }
  /// bf16 weights alone.
  void round() {
    cast({stored.data(), main.size(), DType::bf16}, main);
    rounded = true;
  }
  AdamShard shard(bool has_stored, bool decays) {
    AdamShard s = {gradient, main, exp_avg, exp_avg_sq};
    if (gradient_dtype == DType::bf16) s.gradient = view_of(narrow_gradient);
    if (has_stored) s.stored = {stored.data(), gradient.size(), stored_dtype};
    if (!remainders.empty()) {
      s.main = {};
      s.remainders = remainders;
    } else if (rounded) {
      s.main = s.stored;
      s.stored = {};
      s.tensor = 17;
      s.first = 4099;
    }
    s.decays = decays;
    return s;
  }
  bool operator==(const Weights& other) const {
    return main == other.main && exp_avg == other.exp_avg && exp_avg_sq == other.exp_avg_sq &&
           stored == other.stored && remainders == other.remainders;
  }

  Floats gradient;
  std::vector<Bf16> narrow_gradient;
  Floats main, exp_avg, exp_avg_sq;
  std::vector<std::byte> stored;
  std::vector<std::uint16_t> remainders;
  bool rounded = false;  // `stored` are the weights
  DType gradient_dtype, stored_dtype;
};

/// All kinds of tensors in one call; `copies` of each.
enum class Kept : std::uint8_t { whole, halves, rounded };
void expect_adamw_as_cpu(int copies, std::uint64_t seed, Kept kept = Kept::whole) {
  const bool whole = kept == Kept::whole;
  std::vector<Weights> gpu;
  for (int i = 0; i < copies; ++i) {
    for (const std::int64_t count : {1, 1030, 0, 64, 2050}) {
      const auto own = static_cast<unsigned>(gpu.size());
      const DType gradient = own % 2 == 0 ? DType::fp32 : DType::bf16;
      gpu.emplace_back(i == 0 ? count : count % 60, gradient,
                       own % 3 == 0 && whole ? DType::fp32 : DType::bf16, own);
      if (kept == Kept::halves) gpu.back().halve();
      if (kept == Kept::rounded) gpu.back().round();
    }
  }
  std::vector<Weights> cpu = gpu;
  const auto work = [&](std::vector<Weights>& all) {
    std::vector<AdamShard> shards;
    for (Weights& each : all) {
      shards.push_back(each.shard(!whole || shards.size() % 4 != 0, shards.size() % 2 == 0));
    }
    return shards;
  };
  std::vector<AdamStep> steps(1, adam_step({.warmup_steps = 10}, 3));
  AdamStep& step = steps.front();
  step.gradient_scale = 0.4F;
  step.decay = 0.99F;
  step.rounding_seed = 23;
  host_cuda::set_seed(seed);
  const std::vector<AdamShard> on_gpu = work(gpu);
  cuda::adamw({on_gpu, &step}, nullptr);
  Workers workers(1);
  DeviceStream stream;
  const std::vector<AdamShard> on_cpu = work(cpu);
  CpuCompute(workers).adamw({on_cpu, &step}, stream);
  for (std::size_t i = 0; i < gpu.size(); ++i) EXPECT_TRUE(gpu[i] == cpu[i]) << "tensor " << i;
}

TEST(CudaAdamw, HasTheCpusBitsForSeveralTensorsAtOnce) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) expect_adamw_as_cpu(1, seed);
}

TEST(CudaAdamw, HasTheCpusBitsForWeightsInHalves) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) expect_adamw_as_cpu(1, seed, Kept::halves);
}

TEST(CudaAdamw, HasTheCpusBitsForWeightsThatAreRoundedStochastically) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) expect_adamw_as_cpu(1, seed, Kept::rounded);
}

TEST(CudaAdamw, TakesMoreTensorsThanALaunchDoes) {
  if (host_cuda::races_are_watched()) GTEST_SKIP() << "takes long, and shows nothing more";
  expect_adamw_as_cpu(24, 1);
}

}  // namespace
}  // namespace shardwise::exec
