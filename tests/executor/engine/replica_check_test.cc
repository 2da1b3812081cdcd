#include "executor/engine/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

/// A bit of a number that a rank keeps, which is flipped after a step.
struct Flip {
  int rank = 0;
  std::int64_t step = 0;     // trained before it
  std::string tensor;        // a rank that keeps none of it flips nothing
  std::int64_t element = 0;  // of the tensor
  Kept kept = Kept::weights;
  int bit = 0;        // from the lowest
  bool late = false;  // after the comparison of that step, if there is one
};

std::byte* begin_of(Kept kept, const RankState::View& view) {
  if (kept == Kept::weights) return view.weights.data;
  if (kept == Kept::main_weights) return view.main.data;
  if (kept == Kept::exp_avg) return view.exp_avg.data;
  if (kept == Kept::exp_avg_sq) return view.exp_avg_sq.data;
  return reinterpret_cast<std::byte*>(view.remainders.data());
}

std::int64_t bytes_each(Kept kept, const RankState& state) {
  if (kept == Kept::weights) return bytes_of(state.types().weights);
  return kept == Kept::remainders ? 2 : 4;
}

/// \returns whether the rank keeps it
bool flip(const Flip& planted, const Trainer& trainer, const Arena& arena) {
  const RankState& state = trainer.state();
  bool flipped = false;
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const RankState::View view = state.view(arena, 0, u);
    const ShardRange held = planted.kept == Kept::weights ? state.keeps(u) : view.held;
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      const std::int64_t at = tensor.begin + planted.element - held.begin;
      if (tensor.name != planted.tensor || at < 0 || at >= held.count) continue;
      const std::int64_t byte = at * bytes_each(planted.kept, state) + planted.bit / 8;
      begin_of(planted.kept, view)[byte] ^= std::byte{1} << (planted.bit % 8);
      flipped = true;
    }
  }
  return flipped;
}

/// Trains with comparisons every `every` steps. \returns what ended the run; empty when nothing did
/// \param flipped  counts the flips; may be null
std::string ended_by(const Plan& plan, std::int64_t steps, std::int64_t every,
                     const std::vector<Flip>& flips, std::atomic<int>* flipped = nullptr) {
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
            const std::int64_t done = trainer.next_step() + 1;
            const auto plant = [&](bool late) {
              for (const Flip& each : flips) {
                if (each.rank != world.rank() || each.step != done || each.late != late) continue;
                if (flip(each, trainer, arena) && flipped != nullptr) ++*flipped;
              }
            };
            if (done % every == 0) replicas.before_step();
            trainer.step(data);
            plant(false);
            if (done % every == 0) replicas.after_step(done);
            plant(true);
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

/// A way of training that keeps some numbers on several ranks.
struct Way {
  const char* engine = "";
  Layout layout;
  bool remainders = false;
};

Plan bf16_plan(const Way& way) {
  Plan plan =
      way.layout.pp > 1 ? deep_plan(way.layout, 2) : laptop_plan(way.engine, way.layout, 1, false);
  plan.layout.store_param_remainders = way.remainders;
  plan.job.precision = DType::bf16;
  return plan;
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

/// Layouts whose weights an update or a gather writes anew.
std::vector<Plan> plans_of_rewritten_weights() {
  std::vector<Plan> plans;
  for (const DType precision : {DType::bf16, DType::fp32}) {
    for (const Way& way : {Way{"shardwise", data_parallel_layout(0, 3)},
                           Way{"shardwise", data_parallel_layout(0, 3), true},
                           Way{"shardwise", data_parallel_layout(1, 3)},
                           Way{"shardwise", data_parallel_layout(2, 3)},
                           Way{"megatron_ddp", data_parallel_layout(0, 3)},
                           Way{"megatron_ddp", data_parallel_layout(1, 3)},
                           Way{"shardwise", data_parallel_layout(3, 2, 3)}}) {
      if (precision == DType::fp32 && way.remainders) continue;
      plans.push_back(bf16_plan(way));
      plans.back().job.precision = precision;
      plans.back().layout.overlap_param_gather = false;
    }
  }
  return plans;
}

std::string name_of(const Plan& plan) {
  return std::string(plan.engine.name) + " ZeRO-" + std::to_string(plan.layout.zero_stage) +
         (plan.job.precision == DType::bf16 ? " bf16" : " fp32");
}

// The update of the next step, or the gather after it, writes over the bit: no later comparison
// would see it.
TEST(ReplicaCheck, NamesABitThatFlippedInAnyStepSinceTheLastComparison) {
  constexpr std::int64_t kEvery = 3;
  std::mt19937 draw(26);
  const auto below = [&draw](std::int64_t end) {
    return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(end));
  };
  for (const Plan& plan : plans_of_rewritten_weights()) {
    int planted = 0;
    for (int i = 0; i < 8; ++i) {
      Flip flip = {static_cast<int>(below(plan.layout.world())), 1 + below(6), kNorm, below(18)};
      flip.late = true;
      flip.bit = static_cast<int>(below(plan.job.precision == DType::bf16 ? 7 : 23));
      std::atomic<int> flipped = 0;
      const std::string said = ended_by(plan, 9, kEvery, {flip}, &flipped);
      const std::string what = name_of(plan) + ", rank " + std::to_string(flip.rank) + ", step " +
                               std::to_string(flip.step) + ", bit " + std::to_string(flip.bit);
      if (flipped == 0) {
        EXPECT_EQ(said, "") << what;
        continue;
      }
      ++planted;
      const std::int64_t step = (flip.step / kEvery + 1) * kEvery;
      EXPECT_THAT(said, StartsWith("rank " + std::to_string(flip.rank) + ": the copy of ")) << what;
      // Remainders are of the weight that flipped.
      EXPECT_THAT(said, testing::ContainsRegex("after step " + std::to_string(step) + "[: ]"))
          << what;
    }
    EXPECT_GE(planted, plan.layout.zero_stage == 3 ? 1 : 8) << name_of(plan);
  }
}

// The next step gathers what a rank updated. A bit that flipped before that is on all ranks then,
// so that no two of them differ. What others have of the bit's place the gather writes anew.
TEST(ReplicaCheck, NamesTheRankWhoseFlippedBitAGatherSpread) {
  for (const Way& way :
       {Way{"shardwise", data_parallel_layout(1, 3)}, Way{"shardwise", data_parallel_layout(2, 3)},
        Way{"megatron_ddp", data_parallel_layout(1, 3)},
        Way{"megatron_fsdp", data_parallel_layout(1, 3)},
        Way{"megatron_fsdp", data_parallel_layout(2, 3)}}) {
    for (const DType precision : {DType::bf16, DType::fp32}) {
      Plan plan = bf16_plan(way);
      plan.job.precision = precision;
      plan.layout.overlap_param_gather = true;
      std::vector<int> named;
      for (int rank = 0; rank < 3; ++rank) {
        Flip flip = {rank, 4, kNorm, 7};
        flip.late = true;
        std::atomic<int> flipped = 0;
        const std::string said = ended_by(plan, 9, 3, {flip}, &flipped);
        if (said.empty()) continue;
        named.push_back(rank);
        EXPECT_THAT(said, StartsWith("rank " + std::to_string(rank) + ": the copy of ")) << said;
        EXPECT_THAT(said, HasSubstr("after step 6")) << name_of(plan);
      }
      EXPECT_EQ(named.size(), 1U) << name_of(plan);
    }
  }
}

// No learning rate helps against a bit of an exponent.
TEST(ReplicaCheck, ComesBeforeTheMessageOfALossThatIsNoNumber) {
  for (const Plan& plan : plans_of_rewritten_weights()) {
    Flip flip = {1, 2, kNorm, 5};
    flip.late = true;
    flip.bit = plan.job.precision == DType::bf16 ? 14 : 30;  // 1 becomes infinite
    std::atomic<int> flipped = 0;
    const std::string said = ended_by(plan, 9, 100, {flip}, &flipped);
    if (flipped == 0) continue;
    EXPECT_THAT(said, StartsWith("rank 1: the copy of model.norm.weight")) << name_of(plan);
    EXPECT_THAT(said, HasSubstr("after step 3")) << name_of(plan);
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
