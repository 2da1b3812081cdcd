// Whole models by the kernels of GPUs, on fakes, give what the CPU's kernels give.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

#include "planner/cost/kernels/gpu_workspace.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "tests/executor/cuda/fake_gpu.h"
#include "tests/executor/cuda/on_host.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

std::int64_t workspace_bytes(const ModelSpec& model, const LayerShape& shape) {
  JobSpec job;
  job.sequence_length = shape.sequence;
  job.precision = shape.storage;
  Layout layout;
  layout.micro_batch_size = static_cast<std::int32_t>(shape.batch);
  return gpu_workspace_bytes(model, job, layout, FakeGpu::kCapability);
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float each : values) sum += static_cast<double>(each) * static_cast<double>(each);
  return std::sqrt(sum);
}

/// |actual - expected| <= tolerance |expected|.
void expect_near_in_norm(const std::vector<float>& actual, const std::vector<float>& expected,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  std::vector<float> difference(actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) difference[i] = actual[i] - expected[i];
  EXPECT_LE(norm(difference), tolerance * norm(expected)) << what;
}

void expect_model_as_cpu(const ModelSpec& model, const LayerShape& shape, Products products,
                         double tolerance) {
  const ModelRun cpu = run_model(model, shape, 1);
  ModelRun run;
  {
    FakeGpu gpu(7, products, workspace_bytes(model, shape));
    run = run_model(model, shape, gpu.platform());
    EXPECT_THAT(FakeGpu::complaints(), testing::IsEmpty());
  }
  EXPECT_EQ(fake_cuda::left_over(), "");
  EXPECT_EQ(run.loss.tokens, cpu.loss.tokens);
  EXPECT_NEAR(run.loss.loss, cpu.loss.loss, tolerance * cpu.loss.loss);
  expect_near_in_norm(run.logits, cpu.logits, tolerance, "logits");
  ASSERT_EQ(run.gradients.size(), cpu.gradients.size());
  for (const auto& [name, expected] : cpu.gradients) {
    expect_near_in_norm(run.gradients.at(name), expected, tolerance, name);
  }
}

/// Whether NVIDIA's own cuBLASLt multiplies, whose epilogues round otherwise (docs/gpus.md).
bool by_cublaslt(Products products) { return kOnGpu && products == Products::cublaslt; }
// Sums of other orders, e^x within two units of the last place. cuBLASLt's GELU has a tanh of less
// precision: 4e-6 of a gradient on an H100.
double fp32(Products products) { return by_cublaslt(products) ? 1e-5 : 3e-6; }
// Storage rounds by 2^-9; where two orders of a sum lie on two sides of a rounding they differ by
// twice that, some ten times on the way through a layer. The gradient of a bias of keys, whose
// terms nearly cancel, is rounded once more by cuBLASLt's epilogue: 0.031 on an H100.
double bf16(Products products) { return by_cublaslt(products) ? 0.04 : 0.02; }

using LayersCase = std::tuple<std::string, Products>;
class CudaLayers : public testing::TestWithParam<LayersCase> {
 protected:
  void SetUp() override {
    if (products() == Products::own) return;
    try {
      fake_cublaslt::reset();
    } catch (const CublasLtError& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  static ModelSpec model() { return golden_model(std::get<0>(GetParam())); }
  static Products products() { return std::get<1>(GetParam()); }
};

TEST_P(CudaLayers, GiveLossAndGradientsOfTheCpuInFp32) {
  expect_model_as_cpu(model(), golden_shape(), products(), fp32(products()));
}

TEST_P(CudaLayers, GiveThemWithRecomputeAndTheLossByChunks) {
  LayerShape shape = golden_shape();
  shape.loss_chunk = 7;
  shape.recompute = true;
  expect_model_as_cpu(model(), shape, products(), fp32(products()));
}

TEST_P(CudaLayers, GiveThemWithOperationsThatRunAgain) {
  LayerShape shape = golden_shape();
  for (const bool activation : {false, true}) {
    shape.again = {true, true, true, activation};
    expect_model_as_cpu(model(), shape, products(), fp32(products()));
  }
}

TEST_P(CudaLayers, GiveThemInBf16WithGradientsInEitherType) {
  LayerShape shape = golden_shape();
  shape.storage = DType::bf16;
  expect_model_as_cpu(model(), shape, products(), bf16(products()));
  shape.gradients = DType::bf16;
  expect_model_as_cpu(model(), shape, products(), bf16(products()));
}

/// Under sanitizers, one with biases and fused GELU and one with norms by head and grouped heads.
std::vector<std::string> models() {
  if (shardwise::test::kSanitized) return {"gpt2", "qwen3"};
  return golden_names();
}

INSTANTIATE_TEST_SUITE_P(Models, CudaLayers,
                         testing::Combine(testing::ValuesIn(models()),
                                          testing::Values(Products::own, Products::cublaslt)),
                         [](const auto& param) {
                           const bool own = std::get<1>(param.param) == Products::own;
                           return std::get<0>(param.param) + (own ? "_own" : "_cublaslt");
                         });

}  // namespace
}  // namespace shardwise::exec::test
