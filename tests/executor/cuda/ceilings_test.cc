// What scripts/gpu_check.sh holds a GPU's speed against, on the fakes.
#include "tests/bench/gpu_ceilings.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/kernels/cuda/gpu_compute.h"
#include "planner/calibration/measurements.h"
#include "planner/spec/text/csv.h"
#include "tests/bench/gpu_curves.h"
#include "tests/support/host_cuda/fake_cublaslt.h"
#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSmall = std::int64_t{4} << 20;
const std::vector<AttentionShape> kHeads = {{1, 0, 2, 1, 64}};

class GpuCeilingsOnFake : public testing::Test {
 protected:
  void SetUp() override {
    fake_cuda::reset(1);
    try {
      library_ = std::make_shared<CublasLtLibrary>(fake_cublaslt::reset());
      libraries_.cublaslt = library_;
    } catch (const CublasLtError& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  GpuCeilings measured() {
    CudaDevice device(0, 0);
    const std::unique_ptr<Compute> compute = compute_of(device);
    return measure_ceilings(device, *library_, *compute, {kSmall, 1e-4, 16, 32});
  }
  /// With our kernels of attention.
  std::unique_ptr<Compute> compute_of(const CudaDevice& device) const {
    return make_gpu_compute(device.facts(), 0, libraries_,
                            {.attention = GpuComputeOptions::Attention::own});
  }
  std::shared_ptr<CublasLtLibrary> library_;
  GpuLibraries libraries_;
};

TEST_F(GpuCeilingsOnFake, TimeEveryMoveAndProductOnceWarmAndSeveralTimes) {
  const GpuCeilings made = measured();
  ASSERT_EQ(made.moves.size(), 6);     // copies and fills of 1 and 4 MiB, to and from the host
  ASSERT_EQ(made.products.size(), 3);  // those of 16 rows
  for (const MoveCeiling& each : made.moves) {
    EXPECT_GE(each.repeats, 5);
    const double passes = each.move == Move::copy ? 2 : 1;
    EXPECT_DOUBLE_EQ(each.gb_per_s * each.seconds, passes * 1e-9 * double(each.bytes));
  }
  for (const ProductCeiling& each : made.products) {
    EXPECT_GE(each.repeats, 5);
    EXPECT_DOUBLE_EQ(each.tflops * each.seconds, 2e-12 * 16 * 64 * 64);
  }
  // 2 products of 32 x 32 / 2 pairs, 2 heads of 64; 5 backward.
  ASSERT_EQ(made.attention.size(), 1);
  const AttentionTime& attention = made.attention.front();
  constexpr double kForward = 2 * 2.0 * 2 * (32.0 * 32 / 2) * 64;
  EXPECT_NEAR(attention.forward_tflops * attention.forward_seconds, 1e-12 * kForward, 1e-18);
  EXPECT_NEAR(attention.backward_tflops * attention.backward_seconds, 2.5e-12 * kForward, 1e-18);
  EXPECT_EQ(fake_cuda::complaints(), std::vector<std::string>());
  EXPECT_EQ(fake_cublaslt::complaints(), std::vector<std::string>());
  EXPECT_EQ(fake_cuda::left_over() + fake_cublaslt::left_over(), "");
}

TEST_F(GpuCeilingsOnFake, NameMachineLibraryAndUnitsInTheirFile) {
  const std::string json = to_json(measured());
  for (const char* said : {"\"schema\": \"shardwise.gpu_ceilings/1\"", "\"gpu\": \"fake\"",
                           "\"capability\": 90", "\"driver_version\": 13000", "\"move\": \"copy\"",
                           "\"gb_per_s\": ", "\"tflops\": ", "\"product\": \"narrow_gradient\"",
                           "\"dtype\": \"bf16\"", "\"pass\": \"backward\"", "\"head_dim\": 64"}) {
    EXPECT_THAT(json, HasSubstr(said));
  }
}

// What `shardwise fit` reads of them is what was measured.
TEST_F(GpuCeilingsOnFake, WriteTablesThatFitReads) {
  CudaDevice device(0, 0);
  const std::unique_ptr<Compute> compute = compute_of(device);
  const GpuCurves curves =
      measure_curves(device, *library_, *compute,
                     {1, 4, {8, 16}, 1e-4, 1e-4, std::int64_t{1} << 17, kHeads, {16}, 64});
  ASSERT_EQ(curves.gemms.size(), 3 * 2 * 2);
  EXPECT_GT(curves.sustained_tflops, 0);
  const Result<CsvTable> products = parse_csv(gemm_csv(curves), "products.csv");
  ASSERT_TRUE(products);
  const Result<std::vector<GemmPoint>> gemms = gemm_points(*products);
  ASSERT_TRUE(gemms);
  ASSERT_EQ(gemms->size(), curves.gemms.size());
  for (std::size_t i = 0; i < gemms->size(); ++i) {
    EXPECT_EQ((*gemms)[i].m, curves.gemms[i].m);
    EXPECT_EQ((*gemms)[i].n, curves.gemms[i].n);
    EXPECT_EQ((*gemms)[i].k, curves.gemms[i].k);
    EXPECT_NEAR((*gemms)[i].time.value(), curves.gemms[i].seconds, 1e-8 * curves.gemms[i].seconds);
  }
  const Result<CsvTable> copies = parse_csv(moves_csv(curves), "moves.csv");
  ASSERT_TRUE(copies);
  const Result<std::vector<MovePoint>> moves = move_points(*copies, Bytes(0));
  ASSERT_TRUE(moves);
  ASSERT_EQ(moves->size(), curves.moves.size());
  for (std::size_t i = 0; i < moves->size(); ++i) {
    EXPECT_EQ((*moves)[i].moved.value(), curves.moves[i].first);
    EXPECT_NEAR((*moves)[i].time.value(), curves.moves[i].second, 1e-8 * curves.moves[i].second);
  }
}

TEST_F(GpuCeilingsOnFake, WriteATableOfAttentionThatFitReads) {
  CudaDevice device(0, 0);
  const std::unique_ptr<Compute> compute = compute_of(device);
  GpuCurves curves =
      measure_curves(device, *library_, *compute,
                     {1, 1, {8}, 1e-4, 1e-4, std::int64_t{1} << 17, kHeads, {16}, 64});
  ASSERT_EQ(curves.attention.size(), 2);  // 1 and 4 sequences of 16
  // The reader leaves out what is shorter than in training.
  for (AttentionTime& each : curves.attention) each.shape.sequence *= 64;
  const Result<CsvTable> table = parse_csv(attention_csv(curves), "attention.csv");
  ASSERT_TRUE(table);
  const Result<std::vector<AttentionPoint>> points = attention_points(*table);
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 2 * curves.attention.size());
  for (std::size_t i = 0; i < points->size(); ++i) {
    const AttentionTime& made = curves.attention[i / 2];
    const AttentionPoint& point = (*points)[i];
    const bool forward = point.pass == Pass::forward;
    EXPECT_EQ(forward, i % 2 == 0);
    EXPECT_EQ(point.work,
              (shardwise::AttentionWork{made.shape.batch, made.shape.heads, made.shape.kv_heads,
                                        1024, 1024, made.shape.head_dim, made.shape.head_dim}));
    const double seconds = forward ? made.forward_seconds : made.backward_seconds;
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(point.time.value(), seconds, 1e-8 * seconds);
  }
}

TEST_F(GpuCeilingsOnFake, EndWithTheCallThatFailed) {
  fake_cuda::fail("cudaEventElapsedTime", 3, cudaErrorLaunchFailure);
  try {
    measured();
    FAIL() << "nothing was thrown";
  } catch (const CudaError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cudaEventElapsedTime"));
  }
}

}  // namespace
}  // namespace shardwise::exec
