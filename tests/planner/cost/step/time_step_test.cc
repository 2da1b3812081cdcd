#include <gtest/gtest.h>

#include <random>

#include "planner/cost/kernels/flops.h"
#include "planner/cost/step/data_parallel_traffic.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

constexpr double kParameters = 8'030'261'248;  // Llama-3.1-8B

/// Llama-3.1-8B on 8 ranks with 4 micro-batches of one sequence.
Priced sharded(int zero_stage, const EngineProfile& engine) {
  Priced p;
  p.engine = engine;
  p.layout.dp_shard = 8;
  p.layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  p.layout.reduce_every_microbatch = engine.reduce_every_microbatch;
  p.size(4);
  return p;
}

/// An engine that keeps whole parameters and reduces into shards of the gradients.
EngineProfile gradient_sharding() {
  EngineProfile e = megatron_ddp();
  e.zero_stages = {2};
  e.gradient_buffer = GradientBuffer::unit_queue;
  e.bucket_elements = 0;
  return e;
}

// Full-buffer bytes a step and rank with m micro-batches, p bytes a weight, g a gradient on its
// way: ZeRO-0 g N (all-reduce), ZeRO-1 g N + p N, ZeRO-2 m g N + p N, ZeRO-3 m (2p + g) N, and
// m (p + g) N when weights stay gathered between forward and backward.
// Source: Megatron-LM@d98e8a64, megatron/core/distributed; the papers agree for m = 1.
TEST(StepVolume, OfZero0IsOneReductionOfTheGradients) {
  const StepDetail d = sharded(0, megatron_ddp()).detail();
  EXPECT_DOUBLE_EQ(d.reduced_bytes, 4 * kParameters);
  EXPECT_DOUBLE_EQ(d.gathered_bytes, 0);
}

TEST(StepVolume, OfZero1IsOneReductionAndOneGather) {
  Priced p = sharded(1, megatron_ddp());
  const StepDetail d = p.detail();
  EXPECT_DOUBLE_EQ(d.reduced_bytes, 4 * kParameters);
  EXPECT_DOUBLE_EQ(d.gathered_bytes, 2 * kParameters);
  p.layout.fp32_gradients = false;
  EXPECT_DOUBLE_EQ(p.detail().reduced_bytes, 2 * kParameters);
}

TEST(StepVolume, OfZero2ReducesEveryMicrobatchOrOnTheLast) {
  Priced p = sharded(2, gradient_sharding());
  const StepDetail each = p.detail();
  EXPECT_DOUBLE_EQ(each.reduced_bytes, 4 * 4 * kParameters);
  EXPECT_DOUBLE_EQ(each.gathered_bytes, 2 * kParameters);
  p.layout.reduce_every_microbatch = false;
  EXPECT_DOUBLE_EQ(p.detail().reduced_bytes, 4 * kParameters);
}

// A peer counts the forward gather only.
TEST(StepVolume, OfZero3GathersForForwardAndAgainForBackward) {
  Priced p = sharded(3, fsdp2());
  const StepDetail twice = p.detail();
  EXPECT_DOUBLE_EQ(twice.gathered_bytes, 4 * 2 * 2 * kParameters);
  EXPECT_DOUBLE_EQ(twice.reduced_bytes, 4 * 4 * kParameters);  // FSDP2 reduces in fp32
  p.layout.reshard_after_forward = false;
  const StepDetail once = p.detail();
  EXPECT_DOUBLE_EQ(once.gathered_bytes, 4 * 2 * kParameters);
  EXPECT_LT(once.gather, twice.gather);
}

// Backward gathers within nodes of 8, over links that are faster.
TEST(StepVolume, OfZero3IsGatheredInLessTimeWithinSmallGroups) {
  Priced p = sharded(3, fsdp2());
  const StepDetail all = p.detail();
  p.layout.reshard_after_forward = 2;
  const StepDetail some = p.detail();
  p.layout.reshard_after_forward = false;
  const StepDetail once = p.detail();
  EXPECT_LT(some.gather, all.gather);
  EXPECT_GT(some.gather, once.gather);
  EXPECT_DOUBLE_EQ(some.gathered_bytes, all.gathered_bytes);
}

TEST(StepVolume, OfEightBitWeightsIsHalf) {
  Priced p = sharded(3, fsdp2());
  p.job.precision = DType::fp8;
  p.job.fp8_parameter_gather = true;
  EXPECT_DOUBLE_EQ(p.detail().gathered_bytes, 4 * 2 * kParameters);
}

// A micro-batch more takes one reduction more, whatever replicas do at the end of the step.
TEST(StepVolume, OfZero2TakesAsLongAMicrobatchWithReplicasAsWithout) {
  const auto reduces = [](std::int32_t replicas, std::int64_t microbatches) {
    Priced p = sharded(2, gradient_sharding());
    p.layout.dp_replicate = replicas;
    p.size(microbatches);
    return p.detail().reduce.value();
  };
  const double each = reduces(1, 2) - reduces(1, 1);
  EXPECT_GT(each, 0);
  EXPECT_NEAR(reduces(4, 2) - reduces(4, 1), each, 1e-12);
}

// What the outer axis takes is that of its collectives, an all-reduce against half of one and a
// gather.
TEST(StepTime, OfHybridShardingOfTheOptimizerMovesLessBetweenReplicas) {
  Priced p = sharded(3, megatron_fsdp());
  p.layout.dp_replicate = 4;
  p.size(4);
  const Seconds all_reduce = p.detail().reduce;
  p.layout.outer_shards_optimizer = true;
  EXPECT_LT(p.detail().reduce, all_reduce);
}

// A peer prices ZeRO-1 as a full all-reduce and then gathers besides.
TEST(StepTime, OfZero1ReducesIntoShardsRatherThanIntoWholes) {
  const Priced one = sharded(1, megatron_ddp());
  const Priced zero = sharded(0, megatron_ddp());
  EXPECT_LT(one.detail().reduce, 0.75 * zero.detail().reduce);
}

TEST(StepTime, OfHybridShardingReducesShardsOverTheOuterAxis) {
  Priced p = sharded(3, fsdp2());
  const Seconds inner = p.detail().reduce;
  p.layout.dp_replicate = 4;
  p.size(4);
  const Seconds both = p.detail().reduce;
  EXPECT_GT(both, inner);
  // Once a step, an eighth of the gradients each.
  const GroupShape outer = group_shape(p.cluster, p.layout, GroupKind::dp_replicate);
  const Seconds most =
      collective_time(p.cluster, CollectiveKind::all_reduce,
                      Bytes(static_cast<std::int64_t>(4 * kParameters / 8)), outer);
  EXPECT_LT(both - inner, 1.5 * most);
}

TEST(StepTime, HidesReductionBehindBackwardOnlyWhenItOverlaps) {
  Priced p = sharded(1, megatron_ddp());
  const Seconds hidden = p.step().dp_exposed;
  p.layout.overlap_grad_reduce = p.layout.overlap_param_gather = false;
  const StepDetail d = p.detail();
  EXPECT_NEAR(p.step().dp_exposed.value(), (d.reduce + d.gather).value(), 1e-9);
  EXPECT_LT(hidden, p.step().dp_exposed);
}

TEST(StepTime, HasABubbleOfOneLessThanTheStagesOverTheMicrobatches) {
  Priced p;
  p.model = test::llama(32, 4096, 14336, 32, 8, 1024);  // embedding and head weigh nothing
  p.layout.pp = 8;
  p.size(32);
  const TimeParts t = p.step();
  const Seconds useful = t.forward + t.backward;
  EXPECT_NEAR(t.bubble / useful, 7.0 / 32, 0.01);
  p.layout.vpp = 4;
  const TimeParts interleaved = p.step();
  EXPECT_NEAR(interleaved.bubble / useful, 7.0 / (32 * 4), 0.005);
}

// SimAI@f5efb5a9:astra-sim-alibabacloud/astra-sim/workload/Layer.cc:504 divides the exposed time of
// messages between stages by the share of them that is hidden: the more overlaps, the longer.
TEST(StepTime, ExposesMessagesBetweenStagesWholeWithoutOverlapAndLessWithIt) {
  Priced p;
  p.layout.pp = 4;
  p.size(8);
  const Seconds alone = p.step().pp_exposed;
  // The stage with the head is the slowest, and has one neighbour.
  EXPECT_NEAR(alone / (p.stages().hop * (8 + 2 * 3 - 1)), 1, 1e-12);
  p.layout.vpp = 4;  // chunks of other micro-batches run beside some of them
  StepDetail detail;
  const Seconds beside = p.step(&detail).pp_exposed;
  EXPECT_GT(beside, Seconds(0));
  EXPECT_LT(beside, detail.messages);
  // 8 micro-batches of 4 chunks there and back between two stages of the ring.
  EXPECT_NEAR(detail.messages / p.stages().hop, 2 * 8 * 4, 1e-9);
}

TEST(StepTime, ReducesTheTiedEmbeddingBetweenFirstAndLastStage) {
  Priced p;
  p.model = test::gpt(32, 4096, 32, 51200);
  p.layout.pp = 4;
  p.size(8);
  EXPECT_EQ(p.stages().tied_elements, 51200 * 4096);
  EXPECT_GT(p.detail().finalize, Seconds(0));
}

TEST(StepTime, OptimizerMovesItsShardOnly) {
  const Priced alone = sharded(0, megatron_ddp());
  const Priced cut = sharded(1, megatron_ddp());
  EXPECT_LT(cut.step().optimizer, 0.5 * alone.step().optimizer);
}

TEST(StepTime, HidesTheExpertExchangeBesideAnotherMicrobatch) {
  Priced p;
  p.model = test::mixture(32, 4096, 32, 64, 8, 2048, 0);
  p.layout.dp_shard = p.layout.ep = 16;
  p.layout.zero_stage = 1;
  p.size(4);
  const Seconds exposed = p.step().ep_exposed;
  p.job.expert_overlap = true;
  EXPECT_LT(p.step().ep_exposed, 0.7 * exposed);
  EXPECT_GT(p.step().ep_exposed, Seconds(0));  // it takes processors from compute
}

// Each chunk of a stage receives and sends once forward and once backward.
TEST(StepTime, ManyChunksCostTheHostAndTheLinks) {
  Priced p;
  p.model = test::llama(64, 1024, 4096, 8, 8, 32000);
  p.job.sequence_length = 256;  // little work: the host sets the pace
  p.layout.pp = 8;
  p.layout.dp_shard = 1;
  const auto with_chunks = [&](std::int32_t vpp) {
    p.layout.vpp = vpp;
    p.size(8);
    return p;
  };
  const StageTime stage = with_chunks(2).stages().slowest;
  EXPECT_EQ(kernels_a_microbatch(stage, with_chunks(8).layout) -
                kernels_a_microbatch(stage, with_chunks(2).layout),
            4 * 6);
  const TimeParts few = with_chunks(2).step();
  const TimeParts many = with_chunks(8).step();
  EXPECT_GT(many.pp_exposed, few.pp_exposed);
  EXPECT_GT(many.launch, few.launch);
  EXPECT_LT(many.bubble, few.bubble);
}

TEST(StepTime, ReplayedKernelsNeedNoHost) {
  Priced p;
  p.model = test::gpt(12, 768, 12, 50304);
  p.job.sequence_length = 128;
  p.size(1);
  EXPECT_GT(p.step().launch, Seconds(0));
  p.job.cuda_graphs = true;
  EXPECT_EQ(p.step().launch, Seconds(0));
}

TEST(StepTime, OffloadStatesTheBandwidthThatWouldHideIt) {
  Priced p = sharded(1, megatron_ddp());
  p.layout.offload_activations = true;
  const StepDetail d = p.detail();
  EXPECT_GT(d.offload_bytes, 0);
  ASSERT_GT(d.offload_required.value(), 0);
  p.cluster.host_link = d.offload_required * 0.5;
  const Seconds half = p.step().offload_exposed;
  EXPECT_GT(half, Seconds(0));
  p.cluster.host_link = d.offload_required * 1.01;
  // All but what backward needs first, of the layer that forward ran last: there and back.
  EXPECT_LT(p.step().offload_exposed, 0.1 * half);
}

TEST(StepTime, ReadsTheBatchBesideTheStep) {
  Priced p = sharded(1, megatron_ddp());
  EXPECT_EQ(p.step().input_exposed, Seconds(0));
  p.cluster.storage_read = BytesPerSecond(1000);
  const Seconds step = p.step().total();
  EXPECT_NEAR(step.value(), 8 * 4 * 4 * 4096 / 1000.0, 1);  // 8 ranks, 4 sequences, 4 B a token
}

/// A legal layout drawn from everything the job could run, or nothing.
bool draw(Priced& p, std::mt19937& random) {
  const auto any = [&](std::initializer_list<int> values) {
    return *(values.begin() +
             std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  Layout& l = p.layout;
  l = Layout{};
  p.engine = any({0, 1}) == 0 ? megatron_ddp() : fsdp2();
  const bool fsdp = p.engine.name == "fsdp2";
  l.tp = any({1, 2, 8});
  l.sequence_parallel = l.tp > 1;
  l.cp = any({1, 1, 2});
  l.pp = any({1, 1, 2, 4});
  l.vpp = l.pp > 1 ? any({1, 2}) : 1;
  l.dp_shard = any({1, 4, 16});
  l.dp_replicate = any({1, 1, 2});
  l.micro_batch_size = any({1, 2});
  l.zero_stage = static_cast<std::int8_t>(fsdp ? 3 : any({0, 1}));
  l.reshard_after_forward = any({0, 1, 2});
  l.recompute = any({0, 1}) == 1 ? Recompute::full : Recompute::none;
  p.size(any({4, 8}));
  return is_legal(p.model, p.cluster, p.job, p.engine, l);
}

/// Runs `claim` on seeded draws; the seed is shown when one fails.
template <class Claim>
void for_layouts(Claim claim) {
  int checked = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    Priced p;
    if (!draw(p, random)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    claim(p);
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(StepTime, IsTheSumOfPartsThatAreNotNegative) {
  for_layouts([](const Priced& p) {
    const TimeParts t = p.step();
    for (const Seconds part : {t.forward, t.backward, t.recompute, t.tp_exposed, t.cp_exposed,
                               t.ep_exposed, t.pp_exposed, t.dp_exposed, t.bubble, t.optimizer,
                               t.launch, t.offload_exposed, t.input_exposed}) {
      EXPECT_GE(part, Seconds(0));
    }
    const StepReport report = estimate(p.model, p.cluster, p.job, p.engine, p.layout);
    EXPECT_DOUBLE_EQ(report.step_time.value(), t.total().value());
  });
}

TEST(StepTime, NeverBeatsComputeAtPeakNorTheLinks) {
  for_layouts([](const Priced& p) {
    const StepReport report = estimate(p.model, p.cluster, p.job, p.engine, p.layout);
    EXPECT_LT(report.mfu, 1);
    EXPECT_LE(report.mfu, report.hfu + 1e-12);
    for (const AxisTime& axis : report.by_axis) {
      EXPECT_GE(report.step_time, axis.exposed) << axis.axis;
      // Slowed compute is charged to the communication that slows it, never more than half of it.
      EXPECT_LE(axis.exposed, 1.5 * axis.total) << axis.axis;
    }
  });
}

TEST(StepTime, IsNotSlowerWithMoreBandwidth) {
  for_layouts([](const Priced& p) {
    const double before = p.step().total().value();
    Priced faster = p;
    for (LinkTier& tier : faster.cluster.tiers) tier.bandwidth = tier.bandwidth * 2;
    EXPECT_LE(faster.step().total().value(), before * (1 + 1e-9));
    faster = p;
    faster.cluster.gpu.memory_bandwidth = faster.cluster.gpu.memory_bandwidth * 2;
    EXPECT_LE(faster.step().total().value(), before * (1 + 1e-9));
  });
}

TEST(Evaluate, EqualsTheReport) {
  for_layouts([](const Priced& p) {
    const StepReport report = estimate(p.model, p.cluster, p.job, p.engine, p.layout);
    const Evaluation e = evaluate(p.model, p.cluster, p.job, p.engine, p.layout);
    EXPECT_EQ(e.step_time, report.step_time);
    EXPECT_EQ(e.point, report.verdict.point);
    EXPECT_EQ(e.upper, report.verdict.upper);
  });
}

}  // namespace
}  // namespace shardwise
