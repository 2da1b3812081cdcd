// Ranks that share the processors of a machine.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/software/time_rules.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/machine/gpu_writer.h"

namespace shardwise {
namespace {

GpuSpec rank_of(double cores, int threads) {
  GpuSpec gpu = *find_gpu("cpu");
  gpu.cores_per_rank = cores;
  gpu.sm_count = threads;
  return gpu;
}

/// Work of a rank whose collective takes `alone` seconds, in seconds of its processors, is the same
/// whether it runs beside compute or after it.
TEST(SharedProcessor, NeitherGainsNorLosesWorkToACollectiveBesideCompute) {
  struct Case {
    double cores;
    int threads;
  };
  for (const Case& c : {Case{0.5, 1}, Case{1, 1}, Case{2, 2}, Case{1.5, 2}, Case{0.25, 1}}) {
    const GpuSpec gpu = rank_of(c.cores, c.threads);
    const double all = c.threads + kCollectiveThreads;
    const double alone =
        std::min(c.cores, static_cast<double>(c.threads)) + std::min(c.cores, kCollectiveThreads);
    const double compute = shared_rate(gpu, c.threads, all);
    const double moving = shared_rate(gpu, kCollectiveThreads, all);
    // Processors in use: all that the rank has, or as many as it has threads.
    const double used = compute * std::min(c.cores, static_cast<double>(c.threads)) +
                        moving * std::min(c.cores, kCollectiveThreads);
    EXPECT_NEAR(used, std::min({c.cores, all, alone}), 1e-12) << c.cores;
  }
}

TEST(SharedProcessor, GivesAThreadNoMoreThanAProcessor) {
  const GpuSpec gpu = rank_of(4, 1);
  EXPECT_EQ(shared_rate(gpu, 1, 2), 1);
  EXPECT_EQ(overlap_tax(gpu, false, Kernels::planned).other, 0);
}

TEST(SharedProcessor, HidesNothingOfACollectiveWhereAllProcessorsCompute) {
  for (const double cores : {0.25, 0.5, 1.0}) {
    const OverlapTax tax = overlap_tax(rank_of(cores, 1), false, Kernels::planned);
    EXPECT_DOUBLE_EQ(tax.gemm, 1) << cores;
    EXPECT_DOUBLE_EQ(tax.other, 1) << cores;
  }
  // Two threads on two processors lose half of one second of one thread each.
  EXPECT_DOUBLE_EQ(overlap_tax(rank_of(2, 2), false, Kernels::planned).other, 0.5);
}

TEST(MemoryBound, TakesTheRateOfItsKindWhereTheGpuHasOne) {
  GpuSpec gpu = *find_gpu("h100-sxm");
  const Seconds copy = memory_bound_time(gpu, 1_GB);
  gpu.memory_bound.rates = {
      {MoveKind::gelu, gpu.memory_bound.bandwidth_share / 2, gpu.memory_bound.bandwidth_share / 4}};
  EXPECT_EQ(memory_bound_time(gpu, 1_GB, MoveKind::rope), copy);
  const Seconds start = gpu.memory_bound.start;
  const Seconds forward = memory_bound_time(gpu, 1_GB, MoveKind::gelu);
  const Seconds backward = memory_bound_time(gpu, 1_GB, MoveKind::gelu, Pass::backward);
  EXPECT_DOUBLE_EQ((forward - start) / (copy - start), 2);
  EXPECT_DOUBLE_EQ((backward - start) / (copy - start), 4);
}

TEST(MemoryBound, TakesTheRateOfItsTypeElseTheFirstOfItsKind) {
  GpuSpec gpu = rank_of(0.5, 1);
  gpu.memory_bound.start = Seconds(0);
  gpu.memory_bound.rates = {{MoveKind::gelu, 0.5, 0.5, DType::fp32},
                            {MoveKind::gelu, 0.25, 0.125, DType::bf16}};
  const auto time = [&](Pass pass, DType dtype) {
    return memory_bound_time(gpu, 1_GB, MoveKind::gelu, pass, dtype);
  };
  EXPECT_DOUBLE_EQ(time(Pass::forward, DType::bf16) / time(Pass::forward, DType::fp32), 2);
  EXPECT_DOUBLE_EQ(time(Pass::backward, DType::bf16) / time(Pass::backward, DType::fp32), 4);
  EXPECT_EQ(time(Pass::forward, DType::fp16), time(Pass::forward, DType::fp32));
}

TEST(Attention, TakesTheCurveOfItsTypeWhereTheGpuHasOne) {
  GpuSpec gpu = rank_of(0.5, 1);
  gpu.peaks = {{DType::fp32, FlopsPerSecond(4e10)}, {DType::bf16, FlopsPerSecond(4e10)}};
  AttentionWork work;
  work.heads = work.kv_heads = 4;
  work.seq_q = work.seq_kv = 512;
  const auto time = [&](DType dtype) { return attention_time(gpu, dtype, work, Pass::backward); };
  const Seconds before = time(DType::bf16);
  gpu.attention_by_type = {{DType::bf16, gpu.attention_forward, gpu.attention_backward}};
  AttentionCurve& backward = gpu.attention_by_type.front().backward;
  backward.start = backward.start + Seconds(1);
  EXPECT_NEAR((time(DType::bf16) - before).value(), 1, 1e-9);
  EXPECT_LT(time(DType::fp32), Seconds(1));
}

TEST(GpuFile, KeepsWhatWasMeasuredOfAProcessor) {
  GpuSpec gpu = rank_of(0.5, 1);
  gpu.memory_bound.rates = {{MoveKind::swiglu, 0.25, 0.125, DType::fp32},
                            {MoveKind::swiglu, 0.5, 0.25, DType::bf16},
                            {MoveKind::optimizer, 0.5, 0.5, DType::bf16}};
  gpu.attention_by_type = {{DType::bf16, gpu.attention_forward, gpu.attention_backward}};
  gpu.attention_by_type.front().forward.start = Seconds(3e-6);
  JsonWriter json;
  json.begin_object();
  write_gpu(json, gpu);
  json.end_object();
  const Result<JsonValue> read = parse_json(json.text(), "gpu.json");
  ASSERT_TRUE(read.ok());
  const Result<GpuSpec> again = gpu_from_json(*read, "gpu.json");
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_EQ(*again, gpu);
}

}  // namespace
}  // namespace shardwise
