// Where units end on GPUs: pieces of 128 B, equal for all ranks. Every number by hand.
#include "planner/cost/memory/unit_room.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/cost/software/shard_multiple.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::test {
namespace {

/// Units of 512 (embedding), 1360 (block) and 520 elements (head), 2392 in all.
struct Tiny {
  ModelSpec model = llama(1, 8, 48, 2, 1, 64);
  JobSpec job;
  Layout layout;
  std::string cluster = "dgx-h100";
  std::string engine = "shardwise";

  explicit Tiny(int zero_stage, std::int64_t dp_shard = 2) {
    job.sequence_length = 16;
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    layout.dp_shard = static_cast<std::int32_t>(dp_shard);
    layout.fp32_gradients = false;
  }
  /// What a rank keeps over the step.
  Ledger states() const {
    return layout_memory_on(find_cluster(cluster)->gpu, model, job, *find_engine(engine), layout)
        .stages.front()[MemoryPhase::after_init];
  }
  std::int64_t of(MemoryCategory category) const { return states()[category]; }
};

constexpr std::int64_t bytes(std::int64_t elements, std::int64_t each) { return elements * each; }

TEST(UnitRoom, IsAMultipleOfRanksTimesPieces) {
  EXPECT_EQ(unit_room(1360, 2, 64), 1408);  // 11 x 128
  EXPECT_EQ(unit_room(1408, 2, 64), 1408);
  EXPECT_EQ(unit_room(1409, 2, 64), 1536);
  EXPECT_EQ(unit_room(0, 2, 64), 0);
  EXPECT_EQ(unit_room(1361, 2, 1), 1361);   // nothing asks for pieces
  EXPECT_EQ(unit_room(1361, 1, 64), 1361);  // nobody shares it
}

TEST(ShardMultiple, Is128BytesOfWeightsOnGpusUnderOurEngine) {
  const GpuSpec h100 = find_cluster("dgx-h100")->gpu;
  JobSpec job;
  EXPECT_EQ(shard_multiple(*find_engine("shardwise"), job, h100), 64);
  EXPECT_EQ(shard_multiple(*find_engine("shardwise"), job, find_cluster("mi300x")->gpu), 64);
  EXPECT_EQ(shard_multiple(*find_engine("shardwise"), job, find_cluster("laptop")->gpu), 1);
  for (const char* other : {"megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1", "deepspeed"}) {
    EXPECT_EQ(shard_multiple(*find_engine(other), job, h100), 1) << other;
  }
  job.precision = DType::fp32;
  EXPECT_EQ(shard_multiple(*find_engine("shardwise"), job, h100), 32);
}

// Two ranks, bf16: 512, 1408 and 640 elements, 2560; a rank's pieces are 256, 704 and 320, 1280.
TEST(PaddedShards, AreCountedWhereverAUnitIsCutOrLiesWhole) {
  EXPECT_EQ(Tiny(3).of(MemoryCategory::weights), bytes(1280, 2));
  EXPECT_EQ(Tiny(3).of(MemoryCategory::main_weights), bytes(1280, 4));
  EXPECT_EQ(Tiny(3).of(MemoryCategory::gradients), bytes(1280, 2));
  EXPECT_EQ(Tiny(3).of(MemoryCategory::optimizer_moments), bytes(1280, 8));
  // Whole weights and gradients are gathered into and reduced from with their ends.
  EXPECT_EQ(Tiny(1).of(MemoryCategory::weights), bytes(2560, 2));
  EXPECT_EQ(Tiny(1).of(MemoryCategory::gradients), bytes(2560, 2));
  EXPECT_EQ(Tiny(1).of(MemoryCategory::main_weights), bytes(1280, 4));
}

// Three ranks, fp32: pieces of 32 elements end units at multiples of 96: 576, 1440, 576.
TEST(PaddedShards, HaveFewerElementsInFp32) {
  Tiny tiny(3, 3);
  tiny.job.precision = DType::fp32;
  EXPECT_EQ(tiny.of(MemoryCategory::weights), bytes(192 + 480 + 192, 4));
}

// 2 x 2 ranks that share moments: units of 512, 1536 and 768; a rank keeps a half of the weights
// and a quarter of the moments.
TEST(PaddedShards, AreOneOverAllRanksThatShareMoments) {
  Tiny tiny(3);
  tiny.layout.dp_replicate = 2;
  tiny.layout.outer_shards_optimizer = true;
  EXPECT_EQ(tiny.of(MemoryCategory::weights), bytes(256 + 768 + 384, 2));
  EXPECT_EQ(tiny.of(MemoryCategory::optimizer_moments), bytes(128 + 384 + 192, 8));
}

TEST(PaddedShards, AreNoneWhereNothingIsShared) {
  EXPECT_EQ(Tiny(0).of(MemoryCategory::weights), bytes(2392, 2));
  EXPECT_EQ(Tiny(3, 1).of(MemoryCategory::weights), bytes(2392, 2));
}

// The last piece of a CPU's unit may be short: room for ceil(2392 / 2), unit by unit.
TEST(PaddedShards, AreNoneOnCpus) {
  Tiny tiny(3);
  tiny.cluster = "laptop";
  EXPECT_EQ(tiny.of(MemoryCategory::weights), bytes(1196, 2));
  tiny.layout.zero_stage = 1;
  EXPECT_EQ(tiny.of(MemoryCategory::weights), bytes(2392, 2));
}

// What exists in a pass of ZeRO-3: embedding and head whole, two buffers for blocks, each with its
// end: 512 + 640 + 2 x 1408 elements of bf16.
TEST(PaddedShards, AreInTheBuffersOfGathers) {
  const Tiny tiny(3);
  const LayoutMemory memory = layout_memory_on(find_cluster(tiny.cluster)->gpu, tiny.model,
                                               tiny.job, *find_engine("shardwise"), tiny.layout);
  const Ledger& pass = memory.stages.front()[MemoryPhase::steady_forward_backward];
  EXPECT_EQ(pass[MemoryCategory::gathered_weights], bytes(512 + 640 + 1408 + 1408, 2));
  EXPECT_EQ(pass[MemoryCategory::gradient_staging], bytes(640 + 1408 + 1408, 2));
}

}  // namespace
}  // namespace shardwise::test
