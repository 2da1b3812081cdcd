#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

// Bytes of DeepSpeed 0.19.8: those that its own classes hold after deepspeed.initialize (bf16,
// torch.optim.AdamW), and those that its code states.

namespace shardwise {
namespace {

using enum MemoryCategory;
using enum MemoryPhase;

constexpr MemoryPhase kPhases[] = {after_init, first_forward_backward, first_optimizer_step,
                                   steady_forward_backward, steady_optimizer_step};
constexpr std::int64_t kBucket = 2 * std::int64_t{500'000'000};

/// 3,413,550 parameters whose tensors do not divide by the ranks.
ModelSpec tiny() { return test::llama(4, 210, 357, 21, 3, 5021); }

ModelSpec llama_3_1_70b() { return test::llama(80, 8192, 28672, 64, 8, 128256); }

Layout zero(int stage, std::int32_t ranks) {
  Layout layout;
  layout.dp_shard = ranks;
  layout.zero_stage = static_cast<std::int8_t>(stage);
  layout.fp32_gradients = false;
  layout.recompute = Recompute::full;
  return layout;
}

/// One micro-batch.
JobSpec one(const Layout& layout, DType precision = DType::bf16) {
  JobSpec job;
  job.precision = precision;
  job.global_batch_size = layout.dp();
  return job;
}

StageMemory memory_of(const ModelSpec& model, const Layout& layout, DType precision = DType::bf16,
                      const EngineProfile& engine = deepspeed()) {
  return layout_memory(model, one(layout, precision), engine, {}, layout).stages.front();
}

// Measured with a fake process group: ds_tensor, fp32_partitioned_groups_flat and
// grad_partitions_flat_buffer of 8 and of 48 ranks.
TEST(DeepSpeedZero3, HoldsItsGradientPartitionFromTheStart) {
  const auto check = [](std::int32_t ranks, std::int64_t partition) {
    const StageMemory memory = memory_of(tiny(), zero(3, ranks));
    for (const MemoryPhase phase : kPhases) {
      EXPECT_EQ(memory[phase][weights], partition);
      EXPECT_EQ(memory[phase][main_weights], 2 * partition);
      EXPECT_EQ(memory[phase][gradients], partition);
      EXPECT_GE(memory[phase][gradient_staging], kBucket);
    }
    EXPECT_EQ(memory[after_init][gradient_staging], kBucket);
    EXPECT_EQ(memory[after_init][optimizer_moments], 0);
    EXPECT_EQ(memory[first_optimizer_step][gradient_staging], kBucket);
    EXPECT_EQ(memory[steady_optimizer_step][gradient_staging], kBucket + partition);  // joined
  };
  check(8, 853'438);
  check(48, 142'262);
}

// 2 N / d of weights and of gradients, 4 N / d of main weights and the bucket: 9.03 GB.
TEST(DeepSpeedZero3, HoldsNineGigabytesOfAnEightBillionModelOnEightRanksAfterInit) {
  const StageMemory memory = memory_of(test::llama_3_1_8b(), zero(3, 8));
  EXPECT_EQ(memory[after_init].allocated(), Bytes(9'030'261'248));
}

// There as well at the loss of a step of one micro-batch, where backward has made no gradients yet.
TEST(DeepSpeedZero3, HasAsManyGradientsAtTheLossAsInTheStep) {
  constexpr std::int64_t kPartition = 2'007'565'312;
  const StageMemory memory = memory_of(test::llama_3_1_8b(), zero(3, 8));
  EXPECT_EQ(memory[first_forward_backward][gradients], kPartition);
  EXPECT_EQ(memory[steady_optimizer_step][gradients], kPartition);
}

TEST(DeepSpeedZero3, KeepsTheBucketOnTheGpuWhenItsGradientsLeaveWithTheOptimizer) {
  Layout layout = zero(3, 8);
  layout.offload_optimizer = true;
  const StageMemory memory = memory_of(tiny(), layout);
  EXPECT_EQ(memory[after_init][gradients], 0);
  EXPECT_EQ(memory[after_init][gradient_staging], kBucket);
}

// Sub-groups of at least 100,000 elements of 426,719 on a rank, by hand: the token table has
// 131,802. A block has 27 for either norm, 5,513 for queries and the output, 788 for keys and for
// values, 9,372 for each of gate, up and down: 40,772. Two blocks, and of the third its norms,
// attention and gate, are 103,572; up and down, the fourth block, the last norm (27) and the head
// (131,802) are the rest.
TEST(DeepSpeedSubGroups, EndWithTheTensorThatFillsThem) {
  EngineProfile engine = deepspeed();
  engine.sub_group_elements = 100'000;
  const StageMemory memory = memory_of(tiny(), zero(3, 8), DType::bf16, engine);
  constexpr std::int64_t kLargest = 2 * 9'372 + 40'772 + 27 + 131'802;
  static_assert(131'802 + 103'572 + kLargest == 426'719);
  EXPECT_EQ(memory[steady_optimizer_step][main_gradients], 4 * kLargest);
  EXPECT_EQ(memory[steady_forward_backward][main_gradients], 0);
}

// 70B on 16 GPUs: 4,409,606,656 elements on a rank. The first sub-group has the token table,
// 65,667,072, 17 blocks of 53,478,400, and of the next its norms (512 each), attention (9,437,184)
// and two of its three matrices of 14,680,064: 1,013,598,208.
TEST(DeepSpeedSubGroups, LeaveTheStepOfSeventyBillionOnSixteenGpusRoom) {
  constexpr std::int64_t kShard = 4'409'606'656;
  constexpr std::int64_t kLargest =
      65'667'072 + 17 * 53'478'400 + 2 * 512 + 9'437'184 + 2 * 14'680'064;
  static_assert(kLargest == 1'013'598'208);
  const StageMemory memory = memory_of(llama_3_1_70b(), zero(3, 16));
  const Ledger& step = memory[steady_optimizer_step];
  EXPECT_EQ(step[main_gradients], 4 * kLargest);
  EXPECT_EQ(step.allocated(), Bytes(16 * kShard + kBucket + 6 * kLargest));
  EXPECT_NEAR(static_cast<double>(step.allocated().value()) / 1e9, 77.6, 0.05);
}

TEST(DeepSpeedSubGroups, AreTheWholePartitionWhereItIsNotLarger) {
  const auto cast = [](const ModelSpec& model, int stage, std::int32_t ranks) {
    return memory_of(model, zero(stage, ranks))[steady_optimizer_step][main_gradients];
  };
  // The head's part is the last and takes it over 1e9.
  EXPECT_EQ(cast(test::llama_3_1_8b(), 3, 8), 4 * std::int64_t{1'003'782'656});
  EXPECT_EQ(cast(test::llama_3_1_8b(), 3, 16), 2 * std::int64_t{1'003'782'656});
}

// stage_1_and_2.py steps by parameter group, whatever its size.
TEST(DeepSpeedSubGroups, AreZero3sAlone) {
  for (const int stage : {1, 2}) {
    const StageMemory memory = memory_of(llama_3_1_70b(), zero(stage, 16));
    EXPECT_EQ(memory[steady_optimizer_step][main_gradients], 4 * std::int64_t{4'409'606'656});
  }
}

// 8B on 8 GPUs. The first rank has the token table, two blocks, and of the next its norms,
// attention and gate, of which 287,232 elements are another rank's to 58,720,256. The step joins
// its part from whole gradients and casts it; the first one has no moments yet then, and is fuller
// while the optimizer runs.
TEST(DeepSpeedZero1, JoinsItsPartFromWholeGradientsInTheStep) {
  constexpr std::int64_t kPart = 1'003'782'656;
  constexpr std::int64_t kWhole =
      128'256 * 4'096 + 2 * 218'112'000 + 2 * 4'096 + 41'943'040 + 58'720'256;
  for (const int stage : {1, 2}) {
    const StageMemory memory = memory_of(test::llama_3_1_8b(), zero(stage, 8));
    const Ledger& first = memory[first_optimizer_step];
    const Ledger& steady = memory[steady_optimizer_step];
    EXPECT_EQ(first[gradients], 0);
    EXPECT_EQ(first[gradient_staging], 0);
    EXPECT_EQ(first.allocated(), Bytes((16 + 16) * kPart));
    EXPECT_EQ(steady[gradients], 2 * kWhole);
    EXPECT_EQ(steady[gradient_staging], 2 * kPart);
    EXPECT_EQ(steady.allocated(), Bytes((16 + 12 + 6) * kPart + 2 * kWhole));
  }
}

// The bucket of a step of one micro-batch is there from the head's gradient on.
TEST(DeepSpeedZero2, HasNoBucketAtTheLoss) {
  JobSpec job;
  job.precision = DType::bf16;
  job.global_batch_size = 8;
  job.sequence_length = 8'192;
  job.loss = LossKernel::materialised;
  const StageMemory memory =
      layout_memory(test::llama_3_1_8b(), job, deepspeed(), {}, zero(2, 8)).stages.front();
  EXPECT_EQ(memory[steady_forward_backward][gradient_staging], 0);
  EXPECT_GT(memory[steady_forward_backward][logits_and_loss], 0);
}

// FP16_Optimizer, which bf16 has too, runs the optimizer once when it is made; fp32 has none.
TEST(DeepSpeedZero0, HasItsMomentsFromTheStartInSixteenBits) {
  EXPECT_EQ(memory_of(tiny(), zero(0, 8))[after_init][optimizer_moments], 27'308'400);
  EXPECT_EQ(memory_of(tiny(), zero(0, 8), DType::fp32)[after_init][optimizer_moments], 0);
  EXPECT_EQ(memory_of(tiny(), zero(1, 8))[after_init][optimizer_moments], 0);
}

// 128 tokens of a block with 512 and 1,376 features in bf16, computed again. When "up" has made its
// gradient, which begins a reduction: both norms in fp32, their values and outputs; queries, keys,
// values and attention's output with 4 bytes a row; and the gate, which is taken back after it. Of
// gradients those of the gate, the input and the residual stream. DeepSpeed's run had those.
TEST(DeepSpeedBuckets, FindWhatIsThereWhenAGradientBeginsTheirReduction) {
  constexpr std::int64_t kTokens = 128;
  constexpr std::int64_t kHidden = 512;
  constexpr std::int64_t kRow = kTokens * kHidden * 2;
  constexpr std::int64_t kWide = kTokens * 1'376 * 2;
  JobSpec job = one(zero(3, 8));
  job.sequence_length = kTokens;
  const ModelSpec model = test::llama(6, kHidden, 1'376, 8, 8, 2'000);
  const std::vector<LayerMemory> layers = layer_memories(model, job, deepspeed(), zero(3, 8));
  const auto block = std::ranges::find(layers, LayerRole::block, &LayerMemory::role);
  ASSERT_NE(block, layers.end());
  const GradientsMade& up = block->leaving.made.at(1);
  EXPECT_EQ(up.elements, 2 * kHidden * 1'376);
  EXPECT_EQ(up.pass.kept, kRow);
  EXPECT_EQ(up.pass.recomputed, 8 * kRow + 4 * kRow + 4 * kTokens * 8 + 2 * kHidden + kWide);
  EXPECT_EQ(up.pass.handed, kWide);
  EXPECT_EQ(up.pass.made, kRow);
  EXPECT_EQ(up.pass.residual, kRow);
  EXPECT_EQ(block->leaving.made.back().elements, 4 * kHidden * kHidden + 3 * kHidden * 1'376);
}

// Without a bucket all of a layer's are there, but where those of later micro-batches join them.
TEST(DeepSpeedGradients, LeaveOneByOneWhereABucketTakesThemOrTheyJoin) {
  constexpr std::int64_t kMatrix = std::int64_t{2} * 512 * 1'376;
  constexpr std::int64_t kBlock = std::int64_t{2} * (4 * 512 * 512 + 3 * 512 * 1'376);
  const auto gradients_of = [](int stage, std::int64_t micro_batches) {
    Layout layout = zero(stage, 8);
    layout.overlap_grad_reduce = false;
    JobSpec job = one(layout);
    job.sequence_length = 128;
    const ModelSpec model = test::llama(6, 512, 1'376, 8, 8, 2'000);
    const EngineProfile engine = deepspeed();
    const std::vector<LayerMemory> layers = layer_memories(model, job, engine, layout);
    const auto block = std::ranges::find(layers, LayerRole::block, &LayerMemory::role);
    const MemoryRules rules = memory_rules(job, engine, {});
    const bool leave = gradients_leave({&rules, &layout, 0, micro_batches});
    return backward_of(*block, false, leave).gradients;
  };
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(gradients_of(stage, 1), stage < 2 ? kBlock : kMatrix) << "ZeRO-" << stage;
    EXPECT_EQ(gradients_of(stage, 5), kMatrix) << "ZeRO-" << stage;
  }
}

// hpZ: a second shard, whose tensors are padded as the first one's, from the first forward pass to
// the end of the step, and gone between steps. With one micro-batch the loss finds all but the
// head's.
TEST(DeepSpeedHpZ, KeepsASecondShardToTheEndOfTheStep) {
  const ModelSpec model = test::llama(6, 512, 1'376, 8, 8, 16'000);
  const std::int64_t head = std::int64_t{16'001} * 512;  // with the norm before it
  Layout layout = zero(3, 16);
  layout.recompute = Recompute::none;
  for (const std::int64_t micro_batches : {1, 2}) {
    JobSpec job = one(layout);
    job.global_batch_size = 16 * micro_batches;
    job.sequence_length = 128;
    EngineProfile engine = deepspeed();  // its sizes divided by 125, as the golden cases have them
    engine.bucket_elements = engine.reduce_buffer_elements = 4'000'000;
    engine.gather_queue_elements = 8'000'000;
    engine.prefetch_elements = 400'000;
    layout.reshard_after_forward = 1;
    const StageMemory plain = layout_memory(model, job, engine, {}, layout).stages.front();
    layout.reshard_after_forward = 8;
    const StageMemory hybrid = layout_memory(model, job, engine, {}, layout).stages.front();
    const std::int64_t second = 2 * plain[after_init][weights];  // two shards of sixteen
    for (const MemoryPhase phase : kPhases) {
      const std::int64_t more = hybrid[phase][gathered_weights] - plain[phase][gathered_weights];
      const bool at_loss = phase == steady_forward_backward && micro_batches == 1;
      const std::int64_t kept = at_loss ? second - 2 * head / 8 : second;
      EXPECT_EQ(more, phase == after_init ? 0 : kept) << micro_batches;
    }
  }
}

// setup_buckets makes a second bucket with overlap_comm; ZeRO-3 has one whatever overlaps.
TEST(DeepSpeedBuckets, AreTwoUnderZero1And2WhereReductionsOverlap) {
  const auto staged = [](int stage, bool overlaps) {
    Layout layout = zero(stage, 8);
    layout.overlap_grad_reduce = overlaps;
    const StageMemory memory = memory_of(tiny(), layout);
    EXPECT_EQ(memory[after_init][gradient_staging], stage == 3 ? kBucket : 0);
    return memory[steady_forward_backward][gradient_staging];
  };
  for (const int stage : {0, 1, 2, 3}) {
    const std::int64_t more = stage == 1 || stage == 2 ? kBucket : 0;
    EXPECT_EQ(staged(stage, true) - staged(stage, false), more) << "ZeRO-" << stage;
  }
}

}  // namespace
}  // namespace shardwise
