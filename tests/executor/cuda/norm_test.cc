#include "executor/kernels/cuda/norm.h"

#include <gtest/gtest.h>

#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

constexpr double kEpsilon = 1e-3;

struct NormSetting {
  bool rms;
  std::int64_t rows;
  std::int64_t segments;
  std::int64_t width;
  std::int64_t beside;  // elements of a row of x that are not normed
};

/// One case with E's inputs, and everything that a norm makes of them.
template <class E, class G>
struct NormCase {
  explicit NormCase(const NormSetting& setting, unsigned seed)
      : s(setting),
        used(s.segments * s.width),
        shape{s.rows, s.segments, s.width, used + s.beside, used, static_cast<float>(kEpsilon)},
        x(as<E>(random_floats(s.rows * shape.x_stride, seed))),
        weight(as<E>(random_floats(s.width, seed + 1))),
        bias(as<E>(random_floats(s.width, seed + 2))),
        d_y(as<E>(random_floats(s.rows * used, seed + 3))),
        d_x(as<E>(random_floats(s.rows * shape.x_stride, seed + 4))),
        d_weight(as<G>(random_floats(s.width, seed + 5))),
        d_bias(as<G>(random_floats(s.width, seed + 6))),
        kept(unwritten<E>(s.rows * shape.x_stride)),
        y(unwritten<E>(s.rows * used)),
        statistics(unwritten<float>((s.rms ? 1 : 2) * s.rows * s.segments)),
        workspace(static_cast<std::size_t>(cuda::norm_backward_bytes(shape)), std::byte{0xff}) {}

  void on_gpu() {
    if (s.rms) {
      cuda::rms_norm_forward(shape, x.data(), kept.data(), weight.data(), y.data(),
                             statistics.data(), nullptr);
      cuda::rms_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(),
                              d_x.data(), true, d_weight.data(), workspace.data(), nullptr);
    } else {
      cuda::layer_norm_forward(shape, x.data(), kept.data(), weight.data(), bias.data(), y.data(),
                               statistics.data(), nullptr);
      cuda::layer_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(),
                                d_x.data(), true, d_weight.data(), d_bias.data(), workspace.data(),
                                nullptr);
    }
  }
  void on_cpu() {
    Workers workers(1);
    if (s.rms) {
      rms_norm_forward(shape, x.data(), weight.data(), y.data(), statistics.data(), workers);
      rms_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(), d_x.data(),
                        true, d_weight.data(), workers);
    } else {
      layer_norm_forward(shape, x.data(), weight.data(), bias.data(), y.data(), statistics.data(),
                         workers);
      layer_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(), d_x.data(),
                          true, d_weight.data(), d_bias.data(), workers);
    }
  }

  NormSetting s;
  std::int64_t used;
  NormShape shape;
  std::vector<E> x, weight, bias, d_y, d_x;
  std::vector<G> d_weight, d_bias;
  std::vector<E> kept, y;
  Floats statistics;
  std::vector<std::byte> workspace;
};

template <class E, class G>
void expect_norm_as_cpu(const NormSetting& setting, unsigned seed) {
  NormCase<E, G> gpu(setting, seed);
  NormCase<E, G> cpu(setting, seed);
  host_cuda::set_seed(seed);
  gpu.on_gpu();
  cpu.on_cpu();
  expect_near_cpu(gpu.statistics, cpu.statistics, "statistics");
  expect_near_cpu(gpu.y, cpu.y, "y");
  expect_near_cpu(gpu.d_x, cpu.d_x, "d_x");
  expect_near_cpu(gpu.d_weight, cpu.d_weight, "d_weight");
  expect_near_cpu(gpu.d_bias, cpu.d_bias, "d_bias");
  for (std::int64_t i = 0; i < setting.rows * gpu.shape.x_stride; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i % gpu.shape.x_stride < gpu.used) {
      ASSERT_EQ(to_float(gpu.kept[at]), to_float(gpu.x[at])) << "kept at " << i;
    } else {
      ASSERT_TRUE(std::isnan(to_float(gpu.kept[at]))) << "kept, beside the rows at " << i;
    }
  }
}

/// y of the first row by the definition in double.
template <class E>
void expect_as_defined(const NormSetting& setting) {
  NormCase<E, float> gpu(setting, 11);
  gpu.on_gpu();
  Floats y;
  Doubles expected;
  const auto n = static_cast<std::size_t>(setting.width);
  for (std::size_t i = 0; i < n; ++i) y.push_back(to_float(gpu.y[i]));
  double mean = 0;
  double variance = 0;
  for (std::size_t i = 0; i < n && !setting.rms; ++i) mean += to_float(gpu.x[i]) / double(n);
  for (std::size_t i = 0; i < n; ++i) {
    variance += (to_float(gpu.x[i]) - mean) * (to_float(gpu.x[i]) - mean) / double(n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    expected.push_back((to_float(gpu.x[i]) - mean) / std::sqrt(variance + kEpsilon) *
                           to_float(gpu.weight[i]) +
                       (setting.rms ? 0.0 : to_float(gpu.bias[i])));
  }
  expect_close(y, expected, tolerance<E>(), "y");
}

/// A sum over rows has a block for some columns, and each of its threads costs the thread sanitizer
/// some 0.1 ms.
bool takes_long(const NormSetting& s) {
  return host_cuda::races_are_watched() && (s.width > 1280 || s.rows > 100);
}

class CudaNorm : public testing::TestWithParam<NormSetting> {};

TEST_P(CudaNorm, EqualsTheCpuInEveryPrecisionAndOrder) {
  if (takes_long(GetParam())) GTEST_SKIP() << "takes long under the thread sanitizer";
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_norm_as_cpu<float, float>(GetParam(), seed);
    expect_norm_as_cpu<Bf16, float>(GetParam(), seed);
    expect_norm_as_cpu<Bf16, Bf16>(GetParam(), seed);
  }
}

TEST_P(CudaNorm, EqualsItsDefinition) {
  if (takes_long(GetParam())) GTEST_SKIP() << "takes long under the thread sanitizer";
  expect_as_defined<float>(GetParam());
  expect_as_defined<Bf16>(GetParam());
}

TEST_P(CudaNorm, NeedsEachOfItsBarriers) {
  if (takes_long(GetParam())) GTEST_SKIP() << "takes long under the thread sanitizer";
  NormCase<Bf16, float> gpu(GetParam(), 1);
  expect_every_barrier_is_needed([&] { gpu.on_gpu(); });
}

// Half a warp a row, a warp a row of up to 768 and of up to 1024 in bf16, with and without a second
// row, a block a row with one and with several vectors a thread, and rows that no register holds or
// no vector reads.
INSTANTIATE_TEST_SUITE_P(
    Kinds, CudaNorm,
    testing::Values(NormSetting{true, 9, 1, 64, 0}, NormSetting{true, 5, 3, 32, 8},
                    NormSetting{true, 11, 4, 128, 8}, NormSetting{true, 300, 1, 136, 0},
                    NormSetting{false, 7, 1, 800, 0}, NormSetting{false, 300, 1, 136, 0},
                    NormSetting{true, 3, 1, 1280, 0}, NormSetting{true, 3, 1, 2304, 16},
                    NormSetting{true, 5, 1, 77, 3}, NormSetting{true, 2, 1, 8200, 0},
                    NormSetting{false, 9, 1, 64, 0}, NormSetting{false, 3, 1, 1280, 0},
                    NormSetting{false, 3, 1, 2304, 16}, NormSetting{false, 5, 1, 77, 3}));

TEST(CudaNormGradient, TakesThePlaceOfTheOneItIsGiven) {
  const NormSetting heads = {true, 5, 3, 32, 0};
  NormCase<Bf16, float> apart(heads, 1);
  NormCase<Bf16, float> in_place(heads, 1);
  apart.on_gpu();
  in_place.statistics = apart.statistics;
  cuda::rms_norm_backward(apart.shape, apart.x.data(), apart.weight.data(), apart.statistics.data(),
                          apart.d_y.data(), apart.d_x.data(), false, apart.d_weight.data(),
                          apart.workspace.data(), nullptr);
  cuda::rms_norm_backward(in_place.shape, in_place.x.data(), in_place.weight.data(),
                          in_place.statistics.data(), in_place.d_y.data(), in_place.d_y.data(),
                          false, in_place.d_weight.data(), in_place.workspace.data(), nullptr);
  EXPECT_EQ(wide(in_place.d_y), wide(apart.d_x));
}

}  // namespace
}  // namespace shardwise::exec
