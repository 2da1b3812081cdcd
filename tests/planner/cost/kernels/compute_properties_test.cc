// What must hold for every GPU of the catalogue, whatever its coefficients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "planner/cost/kernels/compute.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/gpu_reader.h"

namespace shardwise {
namespace {

class EveryGpu : public testing::TestWithParam<std::string> {
 protected:
  EveryGpu() : gpu_(*find_gpu(GetParam())) {}

  GpuSpec gpu_;
  std::mt19937_64 random_{20261121};  // NOLINT(cert-msc51-cpp): the same shapes every time

  std::int64_t size(std::int64_t most) {
    // As many small as large ones.
    const double bits = std::log2(static_cast<double>(most));
    return std::llround(std::exp2(std::uniform_real_distribution<double>(0, bits)(random_)));
  }
};

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

TEST_P(EveryGpu, NeverMultipliesFasterThanPeakOrMemoryAllow) {
  for (const auto& [dtype, peak] : gpu_.peaks) {
    const double each = bits_of(dtype) / 8.0;
    for (int i = 0; i < 200; ++i) {
      const std::int64_t m = size(65536);
      const std::int64_t n = size(65536);
      const std::int64_t k = size(65536);
      const double time = gemm_time(gpu_, dtype, m, n, k).value();
      EXPECT_GE(time * peak.value(), 2 * product(m, n) * static_cast<double>(k) * (1 - 1e-9));
      const double moved =
          (product(m, k) + product(n, k)) * each + product(m, n) * std::max(2.0, each);
      EXPECT_GE(time * gpu_.memory_bandwidth.value(), moved * (1 - 1e-9))
          << name_of(dtype) << " " << m << " x " << n << " x " << k;
      EXPECT_GE(
          grouped_gemm_time(gpu_, dtype, 4, static_cast<double>(m), n, k).value() * peak.value(),
          8 * product(m, n) * static_cast<double>(k) * (1 - 1e-9));
    }
  }
}

TEST_P(EveryGpu, TakesNoLessTimeForALargerProduct) {
  for (const auto& [dtype, peak] : gpu_.peaks) {
    for (int i = 0; i < 200; ++i) {
      const std::int64_t m = size(65536);
      const std::int64_t n = size(65536);
      const std::int64_t k = size(65536);
      const std::int64_t more = size(4096);
      const double time = gemm_time(gpu_, dtype, m, n, k).value() * (1 - 1e-12);
      EXPECT_GE(gemm_time(gpu_, dtype, m + more, n, k).value(), time);
      EXPECT_GE(gemm_time(gpu_, dtype, m, n + more, k).value(), time);
      EXPECT_GE(gemm_time(gpu_, dtype, m, n, k + more).value(), time);
      EXPECT_GE(gemm_time(gpu_, dtype, m, n, k, GemmOutput::fp32_sum).value(), time);
    }
  }
}

AttentionWork attention(std::int64_t sequence, std::int64_t heads, std::int64_t head_dim) {
  AttentionWork work;
  work.heads = heads;
  work.kv_heads = std::max<std::int64_t>(1, heads / 4);
  work.seq_q = work.seq_kv = sequence;
  work.qk_head_dim = work.v_head_dim = head_dim;
  return work;
}

DType attention_dtype(const GpuSpec& gpu) {
  return gpu.peak(DType::bf16).value() > 0 ? DType::bf16 : DType::fp16;
}

TEST_P(EveryGpu, TakesLongerToAttendToMoreTokens) {
  const DType dtype = attention_dtype(gpu_);
  if (gpu_.peak(dtype).value() <= 0) GTEST_SKIP() << "no 16-bit unit";
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const std::int64_t heads : {1, 8, 64}) {
      for (const std::int64_t head_dim : {64, 96, 128, 192, 256}) {
        Seconds before;
        for (std::int64_t sequence = 128; sequence <= 1 << 20; sequence *= 2) {
          const Seconds time =
              attention_time(gpu_, dtype, attention(sequence, heads, head_dim), pass);
          EXPECT_GT(time, before) << sequence << " tokens, " << heads << " heads of " << head_dim;
          const Flops work = attention_flops(attention(sequence, heads, head_dim), pass);
          EXPECT_GE(time.value() * gpu_.peak(dtype).value(), work.value() * (1 - 1e-9));
          before = time;
        }
      }
    }
  }
}

TEST_P(EveryGpu, TakesLongerForTheGradientsOfAttentionThanForAttention) {
  const DType dtype = attention_dtype(gpu_);
  if (gpu_.peak(dtype).value() <= 0) GTEST_SKIP() << "no 16-bit unit";
  for (const std::int64_t heads : {1, 8, 64}) {
    for (const std::int64_t head_dim : {64, 128, 192}) {
      for (std::int64_t sequence = 1024; sequence <= 1 << 18; sequence *= 2) {
        const AttentionWork work = attention(sequence, heads, head_dim);
        EXPECT_GE(attention_time(gpu_, dtype, work, Pass::backward),
                  attention_time(gpu_, dtype, work, Pass::forward))
            << sequence << " tokens, " << heads << " heads of " << head_dim;
      }
    }
  }
}

TEST_P(EveryGpu, MovesNoByteFasterThanItsMemory) {
  for (const std::int64_t bytes : {1LL, 4096LL, 1LL << 20, 1LL << 34}) {
    EXPECT_GE(memory_bound_time(gpu_, Bytes(bytes)), Bytes(bytes) / gpu_.memory_bandwidth);
  }
  EXPECT_EQ(memory_bound_time(gpu_, Bytes(0)), Seconds(0));
}

// planner/spec/machine/gpu_spec.h and docs/compute.md: what was not measured says what
// stands in.
TEST_P(EveryGpu, NamesTheDataOrTheStandInOfEveryCurve) {
  std::vector<FitRecord> fits = {gpu_.grouped_gemm.fit, gpu_.attention_forward.fit,
                                 gpu_.attention_backward.fit, gpu_.memory_bound.fit};
  for (const GemmCurve& curve : gpu_.gemm) {
    fits.push_back(curve.fit);
    EXPECT_EQ(curve.fit.measured, !curve.shapes.empty());
  }
  for (const FitRecord& fit : fits) {
    EXPECT_FALSE(fit.method.empty());
    EXPECT_EQ(fit.measured, !fit.fitted_on.empty());
    const bool says = fit.method.starts_with("the curve of ") ||
                      fit.method.starts_with("default of the architecture (");
    EXPECT_EQ(fit.measured, !says) << fit.method;
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Catalogue, EveryGpu, testing::ValuesIn(catalogue_names("gpus")),
                         test_name);

}  // namespace
}  // namespace shardwise
