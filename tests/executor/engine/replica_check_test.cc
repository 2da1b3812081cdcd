#include "executor/engine/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// A bit of a rank's weights that is flipped after a step.
struct Flip {
  int rank = 0;
  std::int64_t step = 0;     // trained before it
  std::string tensor;        // a rank that keeps none of it flips nothing
  std::int64_t element = 0;  // of the tensor
};

void flip(const Flip& planted, const Trainer& trainer, const Arena& arena) {
  const RankState& state = trainer.state();
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      const std::int64_t at = tensor.begin + planted.element - state.keeps(u).begin;
      if (tensor.name != planted.tensor || at < 0 || at >= state.keeps(u).count) continue;
      const TensorView view = state.view(arena, 0, u).weights.part(static_cast<std::size_t>(at), 1);
      *view.data ^= std::byte{1};
    }
  }
}

/// Trains with comparisons every `every` steps. \returns what ended the run; empty when nothing did
std::string ended_by(const Plan& plan, std::int64_t steps, std::int64_t every,
                     const std::vector<Flip>& flips) {
  const TokenSequences data = laptop_text(plan);
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  try {
    run_ranks(
        static_cast<int>(plan.layout.world()), abort,
        [&](World& world) {
          Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
          Trainer trainer(plan, world, device, arena, abort, {}, stand_in_kernels(plan));
          trainer.initialise();
          ReplicaCheck replicas(trainer, plan.layout, world, device, arena, abort);
          while (trainer.next_step() < steps) {
            trainer.step(data);
            const std::int64_t done = trainer.next_step();
            for (const Flip& each : flips) {
              if (each.rank == world.rank() && each.step == done) flip(each, trainer, arena);
            }
            replicas.after_step(done, done % every == 0);
          }
        },
        std::chrono::seconds(60));
  } catch (const IoError& ended) {
    return ended.what();
  }
  return "";
}

constexpr const char* kNorm = "model.norm.weight";

TEST(WeightHash, IsAnotherForEveryBitAndTheSameForEveryCut) {
  std::vector<std::byte> bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37);
  const auto hash_of = [&](std::size_t cut) {
    WeightHash hash;
    hash.add(std::span(bytes).first(cut));
    hash.add(std::span(bytes).subspan(cut));
    return hash.value();
  };
  const std::uint64_t whole = hash_of(0);
  EXPECT_EQ(hash_of(32), whole);
  EXPECT_EQ(hash_of(96), whole);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(hash_of(0), whole) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(ReplicaCheck, NamesTheRankAndTheTensorThatAFlippedBitIsIn) {
  const Plan plan = laptop_plan("shardwise", data_parallel_layout(0, 3), 1, false);
  EXPECT_EQ(ended_by(plan, 7, 3, {}), "");
  for (const int rank : {0, 1, 2}) {
    // Planted after step 2: found after step 3.
    const std::string said = ended_by(plan, 7, 3, {{rank, 2, kNorm, 5}});
    const std::string rest = rank == 0   ? "ranks 1 and 2"
                             : rank == 1 ? "ranks 0 and 2"
                                         : "ranks 0 and 1";
    EXPECT_THAT(said, StartsWith("rank " + std::to_string(rank) + ": the copy of " + kNorm +
                                 " differs from those of " + rest +
                                 " after step 3: memory, a device or a link altered it"));
  }
}

TEST(ReplicaCheck, NamesBothOfTwoReplicas) {
  const Plan plan = laptop_plan("megatron_ddp", data_parallel_layout(0, 2), 1, false);
  EXPECT_THAT(ended_by(plan, 4, 1, {{1, 2, kNorm, 0}}),
              StartsWith("ranks 0 and 1: the copies of model.norm.weight differ from one another "
                         "after step 2, and none is in the majority"));
}

TEST(ReplicaCheck, NamesSeveralRanksAndCountsFurtherTensors) {
  const Plan plan = laptop_plan("shardwise", data_parallel_layout(0, 5), 1, false);
  EXPECT_THAT(
      ended_by(plan, 2, 1, {{1, 1, kNorm, 3}, {4, 1, kNorm, 9}, {1, 1, "lm_head.weight", 0}}),
      AllOf(HasSubstr("ranks 1 and 4: the copies of "), HasSubstr("(and 1 tensor more)"),
            HasSubstr("ranks 0, 2 and 3")));
}

// Shards of HSDP: rank r and r + 2, or whichever keep the same ones, and nobody else.
TEST(ReplicaCheck, ComparesShardsWithThoseOfTheOtherReplicas) {
  const Plan plan = laptop_plan("fsdp2", data_parallel_layout(3, 2, 3), 1, false);
  EXPECT_EQ(ended_by(plan, 3, 1, {}), "");
  int named = 0;
  for (const int rank : {0, 1, 2, 3, 4, 5}) {
    const std::string said = ended_by(plan, 3, 1, {{rank, 2, kNorm, 0}});
    if (said.empty()) continue;  // the other shard has that element
    EXPECT_THAT(said, StartsWith("rank " + std::to_string(rank) + ": the copy of " + kNorm));
    ++named;
  }
  EXPECT_EQ(named, 3);
  const Plan alone = laptop_plan("fsdp2", data_parallel_layout(3, 4), 1, false);
  EXPECT_EQ(ended_by(alone, 3, 1, {{1, 2, kNorm, 0}}), "");
}

// What the optimizer updates in shards is gathered at the end of the step, or by the next one.
TEST(ReplicaCheck, WaitsForTheGatherOfWhatOthersUpdated) {
  for (const int zero_stage : {1, 2}) {
    for (const char* engine : {"shardwise", "megatron_ddp", "megatron_fsdp"}) {
      for (const bool overlaps : {true, false}) {
        Plan plan = laptop_plan(engine, data_parallel_layout(zero_stage, 3), 1, false);
        plan.layout.overlap_param_gather = overlaps;
        if (zero_stage == 2 && std::string(engine) == "megatron_ddp") continue;
        EXPECT_EQ(ended_by(plan, 5, 1, {}), "") << engine << " ZeRO-" << zero_stage << overlaps;
        EXPECT_EQ(ended_by(plan, 5, 2, {}), "") << engine << " ZeRO-" << zero_stage << overlaps;
        // Planted into all that one rank keeps.
        std::vector<Flip> flips;
        for (std::int64_t i = 0; i < 18; ++i) flips.push_back({2, 3, kNorm, i});
        const std::string said = ended_by(plan, 5, 1, flips);
        // Of a gather that is still to come only what the rank updated itself stays.
        if (said.empty()) {
          EXPECT_TRUE(overlaps) << engine << " ZeRO-" << zero_stage;
        } else {
          EXPECT_THAT(said, StartsWith("rank 2: the copy of model.norm.weight differs from"));
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::exec::test
