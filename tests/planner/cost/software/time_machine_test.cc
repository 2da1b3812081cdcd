#include <gtest/gtest.h>

#include <utility>

#include "planner/cost/software/timing.h"
#include "planner/estimate/estimate.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

// Expected maxima of n normal numbers: Harter, Biometrika 48 (1961), table 1.
TEST(ExpectedMaximumOfNormals, IsThatOfHartersTable) {
  EXPECT_EQ(expected_maximum_of_normals(1), 0);
  const std::pair<std::int64_t, double> table[] = {
      {8, 1.42360}, {16, 1.76599}, {100, 2.50759}, {400, 2.96818}};
  for (const auto& [n, expected] : table) {
    EXPECT_NEAR(expected_maximum_of_normals(n), expected, 0.01 * expected) << n;
  }
  EXPECT_NEAR(expected_maximum_of_normals(2), 0.56419, 0.05 * 0.56419);
}

// Sinha et al.: four interquartile ranges are 8 % of the median; those of a normal distribution are
// 1.349 standard deviations each.
TEST(TimingFacts, DeriveTheDeviationOfAGpuFromItsPublishedVariation) {
  EXPECT_NEAR(timing_facts().gpu_speed_deviation, 0.08 / (4 * 1.349), 1e-5);
  EXPECT_EQ(slowest_gpu_excess(1), 0);
  EXPECT_LT(slowest_gpu_excess(8), slowest_gpu_excess(4096));
}

TEST(StepTime, WaitsForTheSlowestGpuOfAllRanks) {
  Priced p;
  p.layout.dp_shard = 8;
  p.layout.zero_stage = 1;
  p.layout.micro_batch_size = 2;
  p.job.sequence_length = 8192;
  p.size(4);
  const TimeParts eight = p.step();
  EXPECT_EQ(eight.launch.value(), 0);
  const Seconds computed = eight.forward + eight.backward + eight.recompute;
  EXPECT_NEAR(eight.straggler / computed, slowest_gpu_excess(8), 1e-12);

  p.layout.dp_shard = 512;
  p.size(4);
  EXPECT_GT(p.step().straggler, eight.straggler);

  p.layout.dp_shard = 1;
  p.size(4);
  EXPECT_EQ(p.step().straggler.value(), 0);
}

TEST(StepTime, LetsASlowGpuUseUpTheTimeItsHostTakes) {
  Priced p;
  p.model = test::gpt(12, 768, 12, 50304);
  p.layout.dp_shard = 8;
  p.layout.zero_stage = 1;
  p.job.sequence_length = 128;
  p.size(1);
  const TimeParts parts = p.step();
  EXPECT_GT(parts.launch, parts.forward + parts.backward);
  EXPECT_EQ(parts.straggler.value(), 0);
}

TEST(Estimate, SaysThatItAssumesHowGpusDiffer) {
  Priced p;
  p.layout.dp_shard = 8;
  p.layout.zero_stage = 1;
  p.size(1);
  const StepReport report = estimate(p.model, p.cluster, p.job, p.engine, p.layout);
  bool said = false;
  for (const Assumption& each : report.assumptions) said = said || each.id == "gpu.speed";
  EXPECT_TRUE(said);
}

// pytorch/pytorch issue 143988: a matrix product beside NCCL takes twice as long on H100.
TEST(OverlapTax, IsHalfOfAPersistentProductAndTheOccupiedProcessorsElsewhere) {
  const GpuSpec h100 = find_cluster("dgx-h100")->gpu;
  const GpuSpec a100 = find_cluster("dgx-a100")->gpu;
  const OverlapTax hopper = overlap_tax(h100, false, Kernels::transformer_engine);
  EXPECT_EQ(hopper.gemm, 0.5);
  EXPECT_DOUBLE_EQ(hopper.other, 24.0 / 132);
  EXPECT_DOUBLE_EQ(hopper.of(0.5, 0.5), 0.25 + 12.0 / 132);
  const OverlapTax ampere = overlap_tax(a100, true, Kernels::eager);
  EXPECT_DOUBLE_EQ(ampere.gemm, 16.0 / 108);
  EXPECT_DOUBLE_EQ(ampere.other, 16.0 / 108);
  EXPECT_EQ(overlap_tax(h100, false, Kernels::planned).gemm, hopper.other);
  // Blocks of Blackwell take tiles as they become free.
  const GpuSpec b200 = find_cluster("dgx-b200")->gpu;
  const OverlapTax blackwell = overlap_tax(b200, false, Kernels::transformer_engine);
  EXPECT_EQ(blackwell.gemm, blackwell.other);
}

// pytorch/pytorch issue 138773: 89 us for an all-reduce, 131 for an all-gather, 122 for a
// reduce-scatter by torch.distributed.
TEST(IssueTime, OfACollectiveIsThatOfSeveralKernelsOfEagerModules) {
  const TimingFacts::Issue& torch = issue_facts(fsdp2(), Kernels::eager);
  const auto us = [&](CollectiveKind kind) {
    return kernels_a_collective(kind, torch) * torch.x86.value() * 1e6;
  };
  EXPECT_NEAR(us(CollectiveKind::all_reduce), 89, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::all_gather), 131, 1e-6);
  EXPECT_NEAR(us(CollectiveKind::reduce_scatter), 122, 1e-6);
  const TimingFacts::Issue& compiled = issue_facts(fsdp2(), Kernels::compiled);
  EXPECT_EQ(kernels_a_collective(CollectiveKind::all_reduce, compiled), 1);
}

// NVIDIA/TransformerEngine issue 2053.
TEST(IssueTime, IsThatOfTheModulesAndOfTheHost) {
  const GpuSpec h100 = find_cluster("dgx-h100")->gpu;
  const GpuSpec gb200 = find_cluster("gb200-nvl72")->gpu;
  const auto us = [](const EngineProfile& engine, Kernels kernels, const GpuSpec& gpu) {
    return issue_time(issue_facts(engine, kernels), gpu).value() * 1e6;
  };
  EXPECT_NEAR(us(fsdp2(), Kernels::eager, h100), 13.48, 1e-9);
  EXPECT_NEAR(us(fsdp2(), Kernels::eager, gb200), (33.17 + 37.08) / 2, 0.05);
  EXPECT_NEAR(us(megatron_ddp(), Kernels::transformer_engine, gb200), (90.53 + 99.66) / 2, 0.05);
  // Transformer Engine's share over PyTorch's is the same on both hosts.
  EXPECT_NEAR(us(megatron_ddp(), Kernels::transformer_engine, h100) / 13.48, 95.1 / 35.1, 0.01);
  EXPECT_EQ(us(megatron_ddp(), Kernels::eager, h100),
            us(megatron_ddp(), Kernels::transformer_engine, h100));
  EXPECT_LT(us(fsdp2(), Kernels::compiled, h100), us(fsdp2(), Kernels::eager, h100));
}

TEST(LayerTime, OrdersAttentionGradientsWhenStepsMustRepeatBitForBit) {
  Priced p;
  p.size(1);
  const LayerTime free = p.layer("block");
  p.job.deterministic = true;
  const LayerTime ordered = p.layer("block");
  EXPECT_EQ(ordered.forward.attention.value(), free.forward.attention.value());
  EXPECT_NEAR(ordered.backward.attention / free.backward.attention, 575.0 / 361, 0.01);
}

}  // namespace
}  // namespace shardwise
