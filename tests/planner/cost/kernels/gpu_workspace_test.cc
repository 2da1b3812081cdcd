// Bytes by hand.
#include "planner/cost/kernels/gpu_workspace.h"

#include <gtest/gtest.h>

#include "planner/model/hf_config.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {
namespace {

constexpr int kAmpere = 80;
constexpr int kHopper = 90;

std::int64_t bytes_of_run(const char* model, DType precision, std::int64_t sequence,
                          std::int32_t batch, int capability, bool deterministic = false) {
  const Result<ModelSpec> read = load_model(model);
  EXPECT_TRUE(read.ok()) << model;
  JobSpec job;
  job.sequence_length = sequence;
  job.precision = precision;
  job.deterministic = deterministic;
  Layout layout;
  layout.micro_batch_size = batch;
  return gpu_workspace_bytes(*read, job, layout, capability);
}

TEST(GpuWorkspace, IsThatOfProductsInFp32) {
  EXPECT_EQ(bytes_of_run("gpt2", DType::fp32, 1024, 4, kHopper), 32 << 20);
  EXPECT_EQ(bytes_of_run("gpt2", DType::fp32, 1024, 4, kAmpere), 4 << 20);
}

TEST(GpuWorkspace, HoldsGradientsOfQueriesKeysAndValuesBesideCudnnsOwnInBf16) {
  // 36 heads of 64 in bf16; where its own kernels run cuDNN asks for a little only.
  EXPECT_EQ(bytes_of_run("gpt2", DType::bf16, 1024, 32, kHopper), 32 * 1024 * 36 * 64 * 2 + 256);
  // Queries in fp32 once more.
  EXPECT_EQ(bytes_of_run("gpt2", DType::bf16, 1024, 32, kAmpere),
            32 * 1024 * (36 * 64 * 2 + 12 * 64 * 4) + 256);
  // Keys and values of each of 32 heads that share 8 of them.
  EXPECT_EQ(bytes_of_run("llama-3.2-1b", DType::bf16, 8192, 2, kHopper),
            2 * 8192 * (48 * 64 * 2 + 32 * 64 * 4) + 256);
}

TEST(GpuWorkspace, HoldsTheScoresOfADeterministicBackwardOfOneGiBAtMost) {
  // 2 bytes for each pair of 1024 positions of 12 heads.
  EXPECT_EQ(bytes_of_run("gpt2", DType::bf16, 1024, 32, kHopper, true),
            32 * 1024 * 36 * 64 * 2 + 256 + std::int64_t{2} * 32 * 12 * 1024 * 1024);
  // 8.6 GB of scores: our kernels run it, and what is left is for products.
  EXPECT_EQ(bytes_of_run("llama-3.2-1b", DType::bf16, 8192, 2, kHopper, true), 32 << 20);
}

TEST(GpuWorkspace, HoldsTheSumsOfWideNorms) {
  // 512 parts of two sums of 16384 columns in fp32.
  EXPECT_EQ(bytes_of_run("llama-3.1-405b", DType::fp32, 4096, 1, kAmpere), 512 * 2 * 16384 * 4);
  EXPECT_EQ(norm_backward_workspace(5, 100), 8 * 2 * 100 * 4);  // one part, as 8 are the least
  EXPECT_EQ(norm_backward_parts(1024, 768), 64);
  EXPECT_EQ(norm_backward_parts(1024, 4096), 256);
}

TEST(GpuWorkspace, HoldsTheSumsOfLongRunsOfATokensRows) {
  // 8 of 1024 rows' segments, twice, 768 columns in fp32; and the sorted rows with their tokens.
  EXPECT_EQ(embedding_backward_workspace(1024, 768), 2 * 1024 * 4 + 16 * 768 * 4);
  EXPECT_EQ(embedding_backward_workspace(1, 8), 16 + 2 * 8 * 4);
}

TEST(GpuWorkspace, HasTheSumsOfABiasGradientWithinOneMiB) {
  EXPECT_EQ(bias_gradient_parts(32768, 768), 64);
  EXPECT_EQ(bias_gradient_parts(640, 768), 10);
  EXPECT_EQ(bias_gradient_parts(32768, 16384), 16);
  EXPECT_EQ(bias_gradient_parts(32768, 1 << 20), 1);
}

}  // namespace
}  // namespace shardwise
