// Bits of weights that an update or a gather writes over before replicas are compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "tests/executor/engine/flips.h"

namespace shardwise::exec::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Layouts whose weights an update or a gather writes anew.
std::vector<Plan> plans_of_rewritten_weights() {
  std::vector<Plan> plans;
  const auto in_stages = [](Layout layout) {
    layout.pp = 2;
    return layout;
  };
  for (const DType precision : {DType::bf16, DType::fp32}) {
    for (const Way& way : {Way{"shardwise", data_parallel_layout(0, 3)},
                           Way{"shardwise", data_parallel_layout(0, 3), true},
                           Way{"shardwise", data_parallel_layout(1, 3)},
                           Way{"shardwise", data_parallel_layout(2, 3)},
                           Way{"megatron_ddp", data_parallel_layout(0, 3)},
                           Way{"megatron_ddp", data_parallel_layout(1, 3)},
                           Way{"megatron_fsdp", data_parallel_layout(2, 3)},
                           Way{"shardwise", data_parallel_layout(3, 2, 3)},
                           Way{"fsdp2", data_parallel_layout(3, 2, 3)},
                           Way{"megatron_fsdp", data_parallel_layout(3, 2, 3)},
                           Way{"shardwise", in_stages(data_parallel_layout(0, 3))},
                           Way{"shardwise", in_stages(data_parallel_layout(1, 3))},
                           Way{"shardwise", in_stages(data_parallel_layout(2, 3))},
                           Way{"shardwise", in_stages(data_parallel_layout(3, 2, 3))}}) {
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
         (plan.layout.pp > 1 ? " in stages" : "") +
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
    const bool all_keep_it = plan.layout.zero_stage < 3 && plan.layout.pp == 1;
    EXPECT_GE(planted, all_keep_it ? 8 : 1) << name_of(plan);
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

}  // namespace
}  // namespace shardwise::exec::test
