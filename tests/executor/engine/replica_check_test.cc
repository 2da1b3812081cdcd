#include "executor/engine/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <tuple>
#include <vector>

#include "tests/executor/engine/flips.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

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
        // Planted into all that one rank keeps. Where the next step gathers what others updated, it
        // is seen in what this one gathered, which may be all or some but for one rank: that one is
        // named after the next step.
        for (const std::int64_t every : {1, 3}) {
          int named = 0;
          for (const int rank : {0, 1, 2}) {
            std::vector<Flip> flips;
            for (std::int64_t i = 0; i < 18; ++i) flips.push_back({rank, 3, kNorm, i});
            const std::string said = ended_by(plan, 5, every, flips);
            if (said.empty()) continue;
            ++named;
            EXPECT_THAT(said, StartsWith("rank " + std::to_string(rank) +
                                         ": the copy of model.norm.weight differs from"));
            EXPECT_THAT(said,
                        testing::ContainsRegex(overlaps ? "after step [34]:" : "after step 3:"));
          }
          EXPECT_GE(named, overlaps && every > 1 ? 2 : 3)
              << engine << " ZeRO-" << zero_stage << overlaps;
        }
      }
    }
  }
}

std::vector<Kept> states_of(const Plan& plan) {
  const StateTypes types = state_types(lowering_context(plan, Granularity::layer, false));
  std::vector<Kept> kept = {Kept::exp_avg, Kept::exp_avg_sq};
  if (types.main_weights) kept.push_back(types.remainders ? Kept::remainders : Kept::main_weights);
  return kept;
}

constexpr std::array<const char*, 6> kTexts = {"",
                                               "",
                                               "the main weights of ",
                                               "the remainders of the main weights of ",
                                               "exp_avg of ",
                                               "exp_avg_sq of "};

// The lowest bit of a main weight or of a moment of a run in bf16, of any rank: a comparison of the
// weights would not see it.
TEST(ReplicaCheck, FindsTheLowestBitOfStatesThatRanksHaveInCopies) {
  Layout stages = data_parallel_layout(0, 3);
  stages.pp = 2;
  for (const Way& way :
       {Way{"shardwise", data_parallel_layout(0, 3)},
        Way{"shardwise", data_parallel_layout(0, 3), true},
        Way{"megatron_ddp", data_parallel_layout(0, 3)},
        Way{"shardwise", data_parallel_layout(1, 2, 3)},
        Way{"megatron_ddp", data_parallel_layout(1, 2, 3)},
        Way{"shardwise", data_parallel_layout(2, 2, 3), true},
        Way{"shardwise", data_parallel_layout(3, 2, 3)},
        Way{"fsdp2", data_parallel_layout(3, 2, 3)},
        Way{"megatron_fsdp", data_parallel_layout(3, 2, 3)}, Way{"shardwise", stages}}) {
    const Plan plan = bf16_plan(way);
    const std::string what = std::string(way.engine) + " ZeRO-" +
                             std::to_string(plan.layout.zero_stage) +
                             (way.remainders ? ", remainders" : "");
    EXPECT_EQ(ended_by(plan, 3, 1, {}), "") << what;
    for (const Kept kept : states_of(plan)) {
      int named = 0;
      for (int rank = 0; rank < static_cast<int>(plan.layout.world()); ++rank) {
        std::atomic<int> flipped = 0;
        const std::string said = ended_by(plan, 4, 2, {{rank, 2, kNorm, 5, kept}}, &flipped);
        if (flipped == 0) {
          EXPECT_EQ(said, "") << what;
          continue;
        }
        ++named;
        EXPECT_THAT(said, StartsWith("rank " + std::to_string(rank) + ": the copy of " +
                                     kTexts.at(static_cast<std::size_t>(kept)) + kNorm +
                                     " differs from those of ranks "))
            << what;
        EXPECT_THAT(said, HasSubstr("after step 2")) << what;
      }
      EXPECT_EQ(named, 3) << what;
    }
  }
}

// Where each is kept once there is nothing to compare.
TEST(ReplicaCheck, ComparesNoStatesThatOneRankHas) {
  Layout both = data_parallel_layout(3, 2, 2);
  both.outer_shards_optimizer = true;
  for (const Way& way :
       {Way{"shardwise", data_parallel_layout(1, 3)}, Way{"shardwise", data_parallel_layout(2, 3)},
        Way{"fsdp2", data_parallel_layout(3, 3)}, Way{"megatron_fsdp", both}}) {
    const Plan plan = bf16_plan(way);
    for (const Kept kept : states_of(plan)) {
      std::atomic<int> flipped = 0;
      for (int rank = 0; rank < static_cast<int>(plan.layout.world()); ++rank) {
        EXPECT_EQ(ended_by(plan, 2, 2, {{rank, 2, kNorm, 5, kept}}, &flipped), "");
      }
      EXPECT_EQ(flipped, 1);
    }
  }
}

// The first and the last stage both have the table of embedding and head, cut at other places where
// each rank updates a part.
TEST(ReplicaCheck, ComparesATableBetweenTheStagesThatHaveIt) {
  constexpr const char* kTable = "model.embed_tokens.weight";
  for (const auto& [zero_stage, dp_shard, dp_replicate] :
       {std::tuple(0, 1, 1), std::tuple(0, 2, 1), std::tuple(1, 2, 1), std::tuple(2, 2, 1),
        std::tuple(3, 2, 1), std::tuple(3, 2, 2)}) {
    Layout layout = data_parallel_layout(zero_stage, dp_shard, dp_replicate);
    layout.pp = 3;
    layout.overlap_param_gather = false;
    const Plan plan = deep_plan(layout, 2, true);
    EXPECT_EQ(ended_by(plan, 3, 1, {}), "") << zero_stage;
    for (const Kept kept : {Kept::weights, Kept::exp_avg}) {
      for (const std::int64_t element : {2000, 257 * 18 - 1}) {
        int named = 0;
        for (int rank = 0; rank < static_cast<int>(layout.world()); ++rank) {
          std::atomic<int> flipped = 0;
          const std::string said =
              ended_by(plan, 2, 2, {{rank, 2, kTable, element, kept}}, &flipped);
          if (flipped == 0) {
            EXPECT_EQ(said, "");
            continue;
          }
          ++named;
          EXPECT_THAT(said, HasSubstr(kTable)) << "ZeRO-" << zero_stage << ", rank " << rank;
          EXPECT_THAT(said, AnyOf(StartsWith("rank " + std::to_string(rank) + ":"),
                                  AllOf(StartsWith("ranks "), HasSubstr("none is in the majority"),
                                        HasSubstr(std::to_string(rank)))));
        }
        const bool everywhere = zero_stage == 0 || (kept == Kept::weights && zero_stage < 3);
        EXPECT_EQ(named, 2 * (everywhere ? dp_shard : 1) * dp_replicate)
            << "ZeRO-" << zero_stage << ", " << element;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::exec::test
