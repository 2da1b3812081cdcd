#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/cost/kernels/attention_curve.h"
#include "planner/cost/kernels/gemm_curve.h"
#include "planner/spec/machine/gpu_reader.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

const GpuSpec& h100() {
  static const GpuSpec kGpu = *find_gpu("h100-sxm");
  return kGpu;
}

/// What `write` writes, in a file of the running test.
template <class Write>
std::string table(const char* name, Write write) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string path = testing::TempDir() + "/" + test + name;
  std::ofstream file(path);
  write(file);
  return path;
}

/// A curve with coefficients that no GPU of the catalogue has.
GemmCurve made_up() {
  GemmCurve curve;
  curve.start = Seconds(3e-6);
  curve.rate_share = 0.72;
  curve.epilogue = Seconds(2e-6);
  curve.wave_rounding = 0.4;
  curve.split = Seconds(2e-5);
  curve.bandwidth_share = 0.7;
  curve.tiles = {{128, 128, 1}};
  curve.measured_with.slowdown = 0.2;
  curve.measured_with.slowdown_time = Seconds(4e-3);
  return curve;
}

/// 7 x 7 x 7 products as `made_up` would have them timed.
std::string gemm_table() {
  return table(".csv", [](std::ofstream& file) {
    const GemmLimits limits = gemm_limits(h100(), DType::bf16, GemmOutput::written);
    file << "gemm_dtype,m,n,k,latency\n";
    for (const std::int64_t m : {1024, 1536, 2049, 3072, 4096, 8192, 16384}) {
      for (const std::int64_t n : {1024, 1536, 2560, 4096, 7168, 12288, 28672}) {
        for (const std::int64_t k : {1024, 1536, 2560, 4096, 7168, 12288, 28672}) {
          const double time = measured_gemm_seconds(made_up(), limits, {1, m, n, k});
          file << "bfloat16," << m << "," << n << "," << k << "," << time * 1e3 << "\n";
        }
      }
    }
  });
}

TEST(FitGpu, FindsTheCoefficientsThatATableWasMadeWith) {
  const std::string written = testing::TempDir() + "/made_up_gpu.json";
  const Outcome outcome =
      shardwise({"fit", "--gpu", "h100-sxm", "--gemm", gemm_table(), "--source",
                 "gemm=a made-up table", "--sustained", "bf16=600", "-o", written});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<GpuSpec> read = find_gpu(written);
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  const GemmCurve& found = *read->gemm_curve(DType::bf16);
  const GemmCurve known = made_up();
  ASSERT_EQ(found.tiles.size(), 1U);
  EXPECT_EQ(found.tiles[0], known.tiles[0]);
  EXPECT_NEAR(found.rate_share, known.rate_share, 0.01 * known.rate_share);
  EXPECT_NEAR(found.bandwidth_share, known.bandwidth_share, 0.05 * known.bandwidth_share);
  EXPECT_NEAR(found.wave_rounding, known.wave_rounding, 0.05);
  EXPECT_NEAR(found.start.value(), known.start.value(), 0.3e-6);
  EXPECT_NEAR(found.epilogue.value(), known.epilogue.value(), 0.2e-6);
  EXPECT_NEAR(found.measured_with.slowdown, known.measured_with.slowdown, 0.02);
  EXPECT_LT(found.fit.median_error, 0.002);
  EXPECT_EQ(found.fit.points, 343);
  EXPECT_EQ(found.fit.fitted_on, "a made-up table");
  EXPECT_TRUE(found.sustained_measured);
  EXPECT_LT(found.sustained_share, 1);
}

TEST(FitGpu, KeepsTheShapesThatWereTimed) {
  const std::string written = testing::TempDir() + "/made_up_shapes.json";
  ASSERT_EQ(
      shardwise({"fit", "--gpu", "h100-sxm", "--gemm", gemm_table(), "-o", written}).exit_code, 0);
  const Result<GpuSpec> read = find_gpu(written);
  ASSERT_TRUE(read.ok());
  const GemmCurve& found = *read->gemm_curve(DType::bf16);
  ASSERT_EQ(found.shapes.size(), 1U);  // one block: every m with every n and every k
  EXPECT_TRUE(found.measured(2049, 28672, 2560));
  EXPECT_FALSE(found.measured(2048, 28672, 2560));
  EXPECT_TRUE(found.surrounds(2048, 28672, 2560));
  EXPECT_FALSE(found.surrounds(2048, 65536, 2560));
  // The table says nothing of long runs: its own kernels of 10 ms stand in, and reports say so.
  EXPECT_FALSE(found.sustained_measured);
  EXPECT_THAT(found.sustained_source, HasSubstr("kernels of 10 ms"));
}

TEST(FitGpu, FindsTheBandwidthThatATableOfMovesWasMadeWith) {
  const std::string moves = table(".csv", [](std::ofstream& file) {
    file << "m,k,latency\n";
    for (const std::int64_t m : {8192, 16384, 32768, 65536}) {
      for (const std::int64_t k : {4096, 8192, 16384}) {
        const double bytes = 3.0 * static_cast<double>(m * k);
        const double time = 5e-6 + bytes / (0.8 * h100().memory_bandwidth.value());
        file << m << "," << k << "," << time * 1e3 << "\n";
      }
    }
  });
  const std::string written = testing::TempDir() + "/made_up_moves.json";
  const Outcome outcome =
      shardwise({"fit", "--gpu", "h100-sxm", "--memory-bound", moves, "-o", written});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<GpuSpec> read = find_gpu(written);
  ASSERT_TRUE(read.ok());
  EXPECT_NEAR(read->memory_bound.bandwidth_share, 0.8, 0.005);
  EXPECT_NEAR(read->memory_bound.start.value(), 5e-6, 1e-6);
  EXPECT_EQ(read->gemm, h100().gemm);  // what no table speaks of stays
}

TEST(FitGpu, ChecksTheCurvesThereAreWithoutFitting) {
  const std::string times = table(".csv", [](std::ofstream& file) {
    const GemmCurve& curve = *h100().gemm_curve(DType::bf16);
    const GemmLimits limits = gemm_limits(h100(), DType::bf16, GemmOutput::written);
    file << "dtype,m,n,k,latency_ms\n";
    for (const std::int64_t n : {1024, 4096, 16384}) {
      const double time = measured_gemm_seconds(curve, limits, {1, 4096, n, 4096});
      file << "bf16,4096," << n << ",4096," << time * 1e3 / 1.25 << "\n";
    }
  });
  const Outcome outcome = shardwise({"fit", "--gpu", "h100-sxm", "--gemm", times, "--check"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("gemm bf16, short runs"));
  EXPECT_THAT(outcome.out, HasSubstr("+25.0 %"));
}

/// Products that another GPU of the chip does at 0.7 of the curve's speed in long runs.
std::string operators_of_sibling() {
  return table(".csv", [](std::ofstream& file) {
    GemmCurve curve = *h100().gemm_curve(DType::bf16);
    curve.measured_with = {};
    const GemmLimits limits = gemm_limits(h100(), DType::bf16, GemmOutput::written);
    file << "system,op,shape,tflops\n";
    for (const std::int64_t m : {1024, 2048, 4096, 8192}) {
      for (const std::int64_t n : {1024, 4096, 7168, 12288}) {
        for (const std::int64_t k : {1024, 2048, 4096}) {
          const double time = measured_gemm_seconds(curve, limits, {1, m, n, k}) / 0.7;
          const double flops = 2.0 * static_cast<double>(m * n * k);
          file << "other,matmul,\"b=1, m=" << m << ", k=" << k << ", n=" << n
               << ", layout=TN, accumulate=False, out_dtype=bf16\"," << flops / time / 1e12 << "\n";
        }
      }
    }
  });
}

TEST(FitGpu, TakesTheSpeedOfLongRunsFromAnotherGpuOfTheChip) {
  const std::string written = testing::TempDir() + "/sibling.json";
  const Outcome outcome = shardwise(
      {"fit", "--gpu", "h100-sxm", "--operators", operators_of_sibling(), "--system", "other",
       "--held-ratio", "1.1", "--source", "operators=a made-up sibling", "-o", written});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<GpuSpec> read = find_gpu(written);
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  const GemmCurve& found = *read->gemm_curve(DType::bf16);
  EXPECT_NEAR(found.sustained_share, 0.7 * 1.1, 0.005);
  EXPECT_FALSE(found.sustained_measured);
  EXPECT_EQ(found.sustained_source, "a made-up sibling");
  // Nothing else of the sibling is this GPU's.
  EXPECT_EQ(found.rate_share, h100().gemm_curve(DType::bf16)->rate_share);
  EXPECT_EQ(read->grouped_gemm, h100().grouped_gemm);
}

TEST(FitGpu, SaysThatASiblingWithoutOperatorsTellsNothing) {
  EXPECT_EQ(shardwise({"fit", "--gpu", "h100-sxm", "--held-ratio", "1.1"}).err,
            "command line: --held-ratio: 0 products in --operators, fewer than 40\n"
            "    name the operators of the other GPU, and --system\n"
            "1 problem, nothing was run\n");
}

TEST(FitGpu, WritesTheWholeFileOrLeavesTheOldOne) {
  const std::string written = testing::TempDir() + "/whole_or_old.json";
  ASSERT_EQ(
      shardwise({"fit", "--gpu", "h100-sxm", "--sustained", "bf16=600", "-o", written}).exit_code,
      0);
  EXPECT_TRUE(find_gpu(written).ok());
  EXPECT_FALSE(std::filesystem::exists(written + ".part"));
  const Outcome outcome = shardwise({"fit", "--gpu", "h100-sxm", "--sustained", "bf16=600", "-o",
                                     testing::TempDir() + "/no_such_folder/gpu.json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("cannot be written: No such file or directory"));
}

TEST(FitGpu, RefusesRatesThatAreNone) {
  EXPECT_EQ(shardwise({"fit", "--gpu", "h100-sxm", "--sustained", "bf16=fast"}).err,
            "command line: --sustained: fast is not a number from 0.001 to 1000000\n"
            "    TFLOP/s, for example bf16=794.5\n"
            "1 problem, nothing was run\n");
}

}  // namespace
}  // namespace shardwise::cli
