#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/cost/layer/layer_time.h"
#include "planner/estimate/estimate.h"
#include "planner/estimate/loss_rows.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

// 8192 tokens by chunks of 512: 16 times the time of the head's three products on 512 tokens. By
// the rule without a number, 128256 over 4096 is 32 chunks of 256.
TEST(LayerTime, OfAChunkedLossIsThatOfItsChunks) {
  Priced p;
  p.engine = shardwise_engine();
  p.job.sequence_length = 8192;
  p.job.loss = LossKernel::chunked;
  const GpuSpec& gpu = p.cluster.gpu;
  for (const auto& [asked, rows] : {std::pair{512, 512}, {0, 256}, {2048, 2048}, {10000, 8192}}) {
    p.job.loss_chunk_rows = asked;
    const Seconds chunk = gemm_time(gpu, DType::bf16, rows, 128256, 4096, GemmOutput::written) +
                          gemm_time(gpu, DType::bf16, rows, 4096, 128256, GemmOutput::written) +
                          gemm_time(gpu, DType::bf16, 128256, 4096, rows, GemmOutput::fp32_sum);
    const Seconds all = (8192.0 / rows) * chunk;
    EXPECT_NEAR(p.layer("head").backward.gemm / all, 1, 1e-12) << asked;
  }
  // Other engines' kernels keep the rule.
  p.engine = fsdp2();
  p.job.loss_chunk_rows = 0;
  const Seconds by_rule = p.layer("head").backward.gemm;
  p.job.loss_chunk_rows = 2048;
  EXPECT_EQ(p.layer("head").backward.gemm, by_rule);
}

/// A step of a model whose head's gradient has 2.1 GB in fp32, by chunks of rows that are open.
Priced with_open_rows() {
  Priced p;
  p.engine = shardwise_engine();
  p.job.sequence_length = 8192;
  p.job.loss = LossKernel::chunked;
  p.job.loss_chunk_rows = usual_loss_chunk_rows(p.cluster.gpu);
  p.layout.zero_stage = 3;
  p.layout.dp_shard = 8;
  p.size(2);
  return p;
}

Evaluation cost_of(const Priced& p, std::int64_t rows) {
  JobSpec job = p.job;
  job.loss_chunk_rows = rows;
  return evaluate(p.model, p.cluster, job, p.engine, p.layout);
}

std::int64_t decided_rows(const Priced& p, Bytes usable) {
  return decided_job(p.model, p.cluster, p.job, p.engine, p.layout, usable).loss_chunk_rows;
}

// A GPU reads and writes the head's gradient for every chunk; the logits of 2048 more tokens are
// 0.5 GB.
TEST(LossChunks, HaveTheRowsOfTheFastestStepThatFits) {
  const Priced p = with_open_rows();
  EXPECT_LT(cost_of(p, 4096).step_time, cost_of(p, 2048).step_time);
  EXPECT_LT(cost_of(p, 2048).step_time, cost_of(p, 1024).step_time);
  EXPECT_EQ(decided_rows(p, cost_of(p, 4096).upper), 4096);
  EXPECT_EQ(decided_rows(p, cost_of(p, 4096).upper - Bytes(1)), 2048);
  EXPECT_EQ(decided_rows(p, cost_of(p, 2048).upper - Bytes(1)), 1024);
  EXPECT_EQ(decided_rows(p, Bytes(1)), 1024);
}

TEST(LossChunks, ArePricedWith2048RowsUntilTheyAreDecided) {
  const Priced p = with_open_rows();
  EXPECT_EQ(cost_of(p, kOpenLossRows).step_time, cost_of(p, 2048).step_time);
  EXPECT_EQ(cost_of(p, kOpenLossRows).point, cost_of(p, 2048).point);
}

TEST(LossChunks, AreWhatSomebodyStatedAndTheRuleOnCpus) {
  Priced p = with_open_rows();
  p.job.loss_chunk_rows = 512;
  EXPECT_EQ(decided_rows(p, Bytes(1)), 512);
  EXPECT_EQ(usual_loss_chunk_rows(find_cluster("laptop")->gpu), 0);
}

}  // namespace
}  // namespace shardwise
