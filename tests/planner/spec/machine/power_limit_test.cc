#include "planner/spec/machine/power_limit.h"

#include <gtest/gtest.h>

#include "planner/spec/machine/gpu_reader.h"

namespace shardwise {
namespace {

GpuSpec gpu_of(const char* name) {
  Result<GpuSpec> gpu = find_gpu(name);
  EXPECT_TRUE(gpu.ok()) << to_string(gpu.problems());
  return *std::move(gpu);
}

double sustained(const GpuSpec& gpu, DType dtype) { return gpu.gemm_curve(dtype)->sustained_share; }

// facebookexperimental/triton, pull request 854: cuBLAS in 16 bits, 8192 cubed, at 750 W 1,088
// TFLOP/s; stas00/ml-engineering: 1,439 held at 1,000 W.
TEST(PowerLimit, SlowsProductsOfB200AsMeasured) {
  const GpuSpec full = gpu_of("b200");
  const GpuSpec limited = under_power_limit(full, 750);
  EXPECT_NEAR(sustained(limited, DType::bf16) / sustained(full, DType::bf16), 1088.0 / 1439, 0.01);
}

// The same, pull request 2023: 617 TFLOP/s at 500 W, 1,600 to 2,174 at 1,400 W.
TEST(PowerLimit, SlowsProductsOfGb300WithinWhatWasMeasured) {
  const GpuSpec full = gpu_of("gb300");
  ASSERT_EQ(full.tdp_watts, 1400);
  const double share =
      sustained(under_power_limit(full, 500), DType::bf16) / sustained(full, DType::bf16);
  EXPECT_LT(share, 617.0 / 1600);
  EXPECT_GT(share, 617.0 / 2174);
}

TEST(PowerLimit, IsWhatTheH100Of500WattsHas) {
  const GpuSpec limited = under_power_limit(gpu_of("h100-sxm"), 500);
  const GpuSpec metas = gpu_of("h100-sxm-96");
  EXPECT_EQ(limited.tdp_watts, metas.tdp_watts);
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    EXPECT_NEAR(sustained(limited, dtype), sustained(metas, dtype), 1e-4);
  }
}

TEST(PowerLimit, LeavesAllElseAndChangesNothingAtFullPower) {
  const GpuSpec full = gpu_of("h200");
  EXPECT_EQ(under_power_limit(full, full.tdp_watts), full);
  const GpuSpec limited = under_power_limit(full, 400);
  EXPECT_EQ(limited.memory_bandwidth, full.memory_bandwidth);
  EXPECT_EQ(limited.attention_forward, full.attention_forward);
  EXPECT_EQ(limited.memory_bound, full.memory_bound);
  EXPECT_EQ(limited.peaks, full.peaks);
}

}  // namespace
}  // namespace shardwise
