#include "planner/cost/kernels/gemm_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/calibration/fit_gemm.h"
#include "planner/spec/machine/gpu_reader.h"

namespace shardwise {
namespace {

const GpuSpec& gpu(const char* name) {
  static std::map<std::string, GpuSpec> known;
  const auto found = known.find(name);
  return found != known.end() ? found->second : known.emplace(name, *find_gpu(name)).first->second;
}

constexpr GemmShape kShapes[] = {
    {1, 1024, 1024, 1024}, {1, 4096, 4096, 16384}, {1, 8192, 28672, 8192}, {1, 1025, 51200, 2560}};

TEST(UndisturbedGemm, TakesAwayWhatTheSourceOfTheCurveAdded) {
  for (const char* name : {"a100-80-sxm", "h100-sxm", "b200", "l40s"}) {
    for (const GemmCurve& curve : gpu(name).gemm) {
      const GemmLimits limits = gemm_limits(gpu(name), curve.dtype, GemmOutput::written);
      for (const GemmShape& shape : kShapes) {
        const double measured = measured_gemm_seconds(curve, limits, shape);
        const double own = curve.start.value() + gemm_parts(curve, limits, shape, 1.0).body;
        EXPECT_NEAR(undisturbed_gemm_seconds(curve, limits, shape, measured), own, 1e-9 * own);
        EXPECT_LE(own, measured);
      }
    }
  }
}

TEST(UndisturbedGemm, IsZeroWhenTheConversionWasAll) {
  const GemmCurve& curve = *gpu("h100-sxm").gemm_curve(DType::fp8);
  const GemmLimits limits = gemm_limits(gpu("h100-sxm"), DType::fp8, GemmOutput::written);
  EXPECT_EQ(undisturbed_gemm_seconds(curve, limits, kShapes[0], 1e-6), 0);
}

/// The curve's own times, every point `faster` than the curve says.
std::vector<GemmPoint> faster_points(const GemmCurve& curve, double faster) {
  const GemmLimits limits = gemm_limits(gpu("h100-sxm"), curve.dtype, GemmOutput::written);
  std::vector<GemmPoint> points;
  for (const GemmShape& shape : kShapes) {
    GemmPoint point;
    point.dtype = curve.dtype;
    point.m = shape.m;
    point.n = shape.n;
    point.k = shape.k;
    point.time = Seconds(measured_gemm_seconds(curve, limits, shape) / faster);
    points.push_back(point);
  }
  return points;
}

TEST(SustainedShare, ComparesTheBestRateHeldWithTheBestOfTheTableNotOfTheCurve) {
  const GpuSpec& h100 = gpu("h100-sxm");
  GemmCurve curve = *h100.gemm_curve(DType::bf16);
  curve.measured_with = {};
  const GemmLimits limits = gemm_limits(h100, DType::bf16, GemmOutput::written);
  double best = 0;
  for (const GemmShape& s : kShapes) {
    const double flops =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    best = std::max(best, flops / measured_gemm_seconds(curve, limits, s));
  }
  // A table 10 % above the curve in its best point: what is held is a smaller share of it.
  EXPECT_NEAR(sustained_share(h100, curve, faster_points(curve, 1.0), FlopsPerSecond(0.8 * best)),
              0.8, 1e-3);
  EXPECT_NEAR(sustained_share(h100, curve, faster_points(curve, 1.1), FlopsPerSecond(0.8 * best)),
              0.8 / 1.1, 1e-3);
  EXPECT_EQ(sustained_share(h100, curve, faster_points(curve, 1.0), FlopsPerSecond(2 * best)), 1);
}

// Nobody holds more than the best rate of a search over shapes: stas00/ml-engineering@0359db89793c,
// compute/accelerator/README.md, MSMF of H200, B200 and B300.
TEST(SustainedShare, LeavesNoShapeAboveWhatWasHeldInLongRuns) {
  const std::tuple<const char*, DType, double> kHeld[] = {
      {"h200", DType::bf16, 755e12},        {"h200", DType::fp8, 1354e12},
      {"b200", DType::bf16, 1439e12},       {"b200", DType::fp8, 2788e12},
      {"b300", DType::bf16, 1519e12},       {"b300", DType::fp8, 2969e12},
      {"a100-80-pcie", DType::bf16, 258e12}};
  for (const auto& [name, dtype, held] : kHeld) {
    double best = 0;
    for (std::int64_t m = 1024; m <= 16384; m *= 2) {
      for (std::int64_t n = 1024; n <= 65536; n *= 2) {
        for (std::int64_t k = 1024; k <= 65536; k *= 2) {
          const double flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
          best = std::max(best, flops / gemm_time(gpu(name), dtype, m, n, k).value());
        }
      }
    }
    EXPECT_LT(best, held) << name << " " << name_of(dtype);
    EXPECT_GT(best, 0.75 * held) << name << " " << name_of(dtype);
  }
}

TEST(GemmBasis, SaysWhetherTheVeryShapeWasTimed) {
  const GpuSpec& h100 = gpu("h100-sxm");
  const auto basis = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm_basis(h100, DType::bf16, 1, m, n, k);
  };
  EXPECT_EQ(basis(4096, 4096, 4096), GemmBasis::measured);
  EXPECT_EQ(basis(4097, 16384, 51200), GemmBasis::measured);
  EXPECT_EQ(basis(4096, 14336, 4096), GemmBasis::interpolated);
  EXPECT_EQ(basis(32768, 65536, 65536), GemmBasis::interpolated);  // the table ends before
  EXPECT_EQ(basis(512, 4096, 4096), GemmBasis::extrapolated);
  EXPECT_EQ(basis(4096, 128256, 4096), GemmBasis::extrapolated);
}

TEST(GemmBasis, DoesNotTakeAnotherDtypeOutputOrGroupForTheShape) {
  const GpuSpec& h100 = gpu("h100-sxm");
  EXPECT_EQ(gemm_basis(h100, DType::fp16, 1, 4096, 4096, 4096), GemmBasis::extrapolated);
  EXPECT_EQ(gemm_basis(h100, DType::bf16, 1, 4096, 4096, 4096, GemmOutput::fp32_sum),
            GemmBasis::interpolated);
  EXPECT_EQ(gemm_basis(h100, DType::bf16, 8, 4096, 4096, 4096), GemmBasis::extrapolated);
  EXPECT_EQ(gemm_basis(gpu("b200"), DType::bf16, 8, 4096, 4096, 4096), GemmBasis::interpolated);
  EXPECT_EQ(gemm_basis(gpu("a10g"), DType::bf16, 1, 4096, 4096, 4096), GemmBasis::extrapolated);
}

}  // namespace
}  // namespace shardwise
