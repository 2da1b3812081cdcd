#include "planner/cost/kernels/traffic.h"

#include <gtest/gtest.h>

#include "planner/cost/step/wire_time.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

// AdamW in fp32, bytes an element by hand: the gradient is read for the norm (4), read and written
// for clipping (8); gradient, weight and two moments are read (16), weight and moments written
// (12). A separate compute copy in bf16 is written (2). Ours clips in the update and counts its
// norm apart.
TEST(OptimizerTraffic, IsFortyBytesAnElementOfAdamW) {
  const JobSpec job;
  EXPECT_EQ(optimizer_traffic(job, Kernels::eager), 4 + 8 + 16 + 12);
  EXPECT_EQ(optimizer_traffic(job, Kernels::planned), 16 + 12);
  EXPECT_EQ(shared_norm_traffic(Kernels::planned), 4);
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  EXPECT_EQ(time_rules(job, megatron_ddp(), cluster).optimizer_bytes, 40 + 2);
  EXPECT_EQ(time_rules(job, fsdp2(), cluster).optimizer_bytes, 40);
}

// 12 bytes of norm and clipping, the gradient (4), the weight both ways (8), and both ways two
// moments of a byte each and of a scale of four bytes for 256.
TEST(OptimizerTraffic, HasAByteForAMomentInEightBits) {
  const JobSpec job;
  const double narrow = optimizer_traffic(job, Kernels::eager, AdamwKernel::bnb_8bit);
  EXPECT_DOUBLE_EQ(narrow, 12 + 4 + 8 + 2 * 2 * (1 + 4.0 / 256));
  EXPECT_EQ(optimizer_traffic(job, Kernels::eager, AdamwKernel::paged_8bit), narrow);
  EXPECT_EQ(optimizer_traffic(job, Kernels::eager, AdamwKernel::paged), 40);
}

// FSDP2 in bf16, bytes an element by hand: a gathered weight is read from the collective's output
// (2) and written to its parameter (2); a gradient is read in bf16 (2) and written in the dtype of
// the reduction, fp32 (4). Megatron's buffers are the collectives' own.
TEST(CopyTraffic, IsOneReadAndOneWriteAnElement) {
  const JobSpec job;
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  const TimeRules copied = time_rules(job, fsdp2(), cluster);
  EXPECT_EQ(copied.gather_copy_bytes, 2 + 2);
  EXPECT_EQ(copied.reduce_copy_bytes, 2 + 4);
  const TimeRules in_place = time_rules(job, megatron_ddp(), cluster);
  EXPECT_EQ(in_place.gather_copy_bytes, 0);
  EXPECT_EQ(in_place.reduce_copy_bytes, 0);
}

// Bytes an element by hand, 2 each. On a GPU the product reads the stream that it adds to (2), and
// the norm that follows writes its copy (2); GELU's result is written (2) by the product before,
// its input read (2) by the one behind. On a CPU each is a pass: the stream's copy is read too (2),
// GELU reads and writes (2 + 2), its gradient reads both and writes (2 + 2 + 2).
TEST(EpilogueTraffic, TakesThePassesAwayThatProductsAndNormsMakeThemselves) {
  const JobSpec job;
  const KernelTraits on_gpu =
      kernel_traits(find_cluster("dgx-h100")->gpu, ActivationFunction::gelu_tanh);
  OperationSpec residual;
  residual.kind = OpKind::residual;
  OperationSpec gelu;
  gelu.kind = OpKind::activation;
  const Traffic stream = traffic_of(residual, job, Kernels::planned, on_gpu, 2);
  EXPECT_EQ(stream.forward, 2 + 2);
  EXPECT_EQ(stream.backward, 0);
  EXPECT_EQ(stream.forward_kernels, 0);
  EXPECT_EQ(traffic_of(residual, job, Kernels::planned, {}, 2).forward, 2 + 2 + 2);
  const Traffic made = traffic_of(gelu, job, Kernels::planned, on_gpu, 2);
  EXPECT_EQ(made.forward, 2);
  EXPECT_EQ(made.backward, 2);
  EXPECT_EQ(made.forward_kernels + made.backward_kernels, 0);
  EXPECT_EQ(traffic_of(gelu, job, Kernels::planned, {}, 2).forward, 2 + 2);
  EXPECT_EQ(traffic_of(gelu, job, Kernels::planned, {}, 2).backward, 2 + 2 + 2);
  const KernelTraits exact =
      kernel_traits(find_cluster("dgx-h100")->gpu, ActivationFunction::gelu_erf);
  EXPECT_EQ(traffic_of(gelu, job, Kernels::planned, exact, 2).forward, 2 + 2);
  EXPECT_EQ(traffic_of(gelu, job, Kernels::planned, exact, 2).backward_kernels, 1);
  OperationSpec gated = gelu;
  gated.gated = true;
  EXPECT_EQ(traffic_of(gated, job, Kernels::planned, on_gpu, 2).forward,
            traffic_of(gated, job, Kernels::planned, {}, 2).forward);
}

/// How long the busiest link of a stage is busy, over one message.
double on_wire(PipelineSchedule schedule, std::int32_t pp, std::int64_t num_microbatches) {
  Priced p;
  p.model = test::llama(16, 4096, 14336, 32, 8, 128);  // stages with ends hardly have more
  p.engine = shardwise_engine();
  p.layout.pp = pp;
  p.layout.schedule = schedule;
  p.size(num_microbatches);
  const StageTimes stages = p.stages();
  const TimeRules rules = time_rules(p.job, p.engine, p.cluster);
  CollectiveTables tables(p.cluster);
  const DataParallelTables groups = data_parallel_tables(tables, p.cluster, p.layout, {});
  const LeafContext context = {&rules, &p.layout, &groups, num_microbatches};
  return wire_time(stages, context).value() / stages.hop_traffic.seconds[0];
}

/// Messages that a stage sends for 8 more micro-batches: what the two copies of DualPipe reduce is
/// the same for any number.
double messages_of_eight(PipelineSchedule schedule, std::int32_t pp) {
  return on_wire(schedule, pp, 16) - on_wire(schedule, pp, 8);
}

// By hand, 8 micro-batches. 1F1B on two stages: the first sends 8 activations, the last 8
// gradients; a stage between two others sends both. Of DualPipe's two copies each takes 4
// micro-batches: on two stages a rank sends 4 activations of the one and 4 gradients of the other;
// one between others sends both of both. Of a V on two stages, a rank sends an activation and a
// gradient of each.
TEST(WireTime, CountsTheMessagesOfAStage) {
  EXPECT_NEAR(messages_of_eight(PipelineSchedule::one_f_one_b, 2), 8, 1e-9);
  EXPECT_NEAR(messages_of_eight(PipelineSchedule::one_f_one_b, 4), 16, 1e-9);
  EXPECT_NEAR(messages_of_eight(PipelineSchedule::dualpipe, 2), 4 + 4, 1e-9);
  EXPECT_NEAR(messages_of_eight(PipelineSchedule::dualpipe, 4), 2 * (4 + 4), 1e-9);
  EXPECT_NEAR(messages_of_eight(PipelineSchedule::zb_v, 2), 8 + 8, 1e-9);
}

}  // namespace
}  // namespace shardwise
