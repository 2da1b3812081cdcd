// Which communicators a job makes, when, and what the binder does where one promises less.
#include "executor/engine/communicator_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/engine/rank_place.h"
#include "planner/lowering/lower.h"
#include "tests/executor/engine/plain_world.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

/// Sums without adding into a shard, as NCCL's do.
constexpr CommunicatorTraits kPlain = {
    .sums_in_rank_order = true, .adds_into_shard = false, .ragged_shards = true};

std::unique_ptr<World> plain(World& of) { return std::make_unique<PlainWorld>(of, kPlain); }

// Rounded when they are made and after each addition, sums of bf16 join what was there in one
// addition more, wherever that is made.
TEST(ProgramBinder, AccumulatesAfterTheReductionWhereTheCommunicatorDoesNotAdd) {
  Plan plan = laptop_plan("shardwise", data_parallel_layout(2, 2, 1), 3, true);
  plan.layout.fp32_gradients = false;
  plan.job.precision = DType::bf16;
  EXPECT_EQ(train(plan, 3, {}, plain), train(plan, 3));
}

// In fp32 the two orders round apart, and by no more than that.
TEST(ProgramBinder, AccumulatesTheSameSumsOfFp32WithinTheirRounding) {
  const Plan plan = laptop_plan("shardwise", data_parallel_layout(2, 2, 1), 3, true);
  const Curve adds = train(plan, 3);
  const Curve accumulates = train(plan, 3, {}, plain);
  ASSERT_EQ(accumulates.losses.size(), adds.losses.size());
  EXPECT_EQ(accumulates.losses[0], adds.losses[0]);
  for (std::size_t step = 0; step < adds.losses.size(); ++step) {
    EXPECT_NEAR(accumulates.losses[step], adds.losses[step], 1e-5 * std::abs(adds.losses[step]));
    EXPECT_NEAR(accumulates.norms[step], adds.norms[step], 1e-4 * adds.norms[step]);
  }
}

// A communicator is split from another by all ranks together: who made one fewer would hang.
TEST(CommunicatorTable, MakesTheSameCommunicatorsInTheSameOrderOnAllRanksBeforeAStep) {
  const Plan plan = laptop_plan("shardwise", data_parallel_layout(3, 2, 2), 2, true);
  const std::vector<StepProgram> programs = {lower(plan, Granularity::layer, StepKind::first),
                                             lower(plan, Granularity::layer, StepKind::steady)};
  std::vector<std::vector<std::string>> made(4);
  AbortSignal abort;
  run_ranks(4, abort, [&](World& threads) {
    const auto rank = static_cast<std::size_t>(threads.rank());
    PlainWorld world(threads, kPlain, &made[rank]);
    const CommunicatorTable table(programs, plan.layout, world);
    const std::size_t before = made[rank].size();
    for (const StepProgram& program : programs) {
      const StageProgram& stage = program.stages.front();
      for (const ProgramOp& op : stage.operations) {
        const auto& work = stage.costs[static_cast<std::size_t>(op.cost)].collectives;
        if (work.empty()) continue;
        const auto ranks = group_ranks(plan.layout, work.front().group, threads.rank());
        EXPECT_EQ(table.of(stage, op).size(), std::ssize(ranks)) << name_of(stage, op);
      }
    }
    EXPECT_EQ(made[rank].size(), before) << "one is made when it is asked for";
  });
  EXPECT_FALSE(made[0].empty());
  for (const auto& each : made) EXPECT_EQ(each, made[0]);
}

// What one stage sends on one stream the other receives on another.
TEST(CommunicatorTable, HasAPairForEachWayBetweenTwoStages) {
  Layout layout = data_parallel_layout(0, 2);
  layout.pp = 3;
  const Plan plan = laptop_plan("shardwise", layout, 2, true);
  const std::vector<StepProgram> programs = {lower(plan)};
  std::vector<std::vector<std::string>> made(6);
  AbortSignal abort;
  run_ranks(6, abort, [&](World& threads) {
    const auto rank = static_cast<std::size_t>(threads.rank());
    PlainWorld world(threads, kPlain, &made[rank]);
    const CommunicatorTable table(programs, plan.layout, world);
    const std::int32_t own = stage_of(plan.layout, threads.rank());
    const StageProgram& stage = programs.front().stages[static_cast<std::size_t>(own)];
    for (const ProgramOp& op : stage.operations) {
      const CollectiveWork* const work = stage.communication(op);
      if (work == nullptr) continue;
      const Communicator& group = table.of(stage, op);
      if (op.message >= 0) {
        EXPECT_EQ(group.size(), 2) << name_of(stage, op);
        EXPECT_EQ(group.rank(), op.stream == Stream::send ? 0 : 1) << name_of(stage, op);
      } else if (work->ends) {
        EXPECT_EQ(group.size(), 2) << name_of(stage, op);
        EXPECT_EQ(group.rank(), own == 0 ? 0 : 1) << name_of(stage, op);
      }
    }
  });
  for (const auto& each : made) EXPECT_EQ(each.size(), made[0].size());
}

}  // namespace
}  // namespace shardwise::exec::test
