// What the executor runs of a program is said before anything is bound.
#include <gtest/gtest.h>

#include "executor/comm/thread_world.h"
#include "executor/engine/program_binder.h"
#include "planner/lowering/lower.h"
#include "tests/executor/engine/bound_rank.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

bool runs_a_layer(OpRole role) {
  return role == OpRole::forward || role == OpRole::backward || role == OpRole::recompute;
}

/// Operations of the first stage for which there is a kernel, of a pass and of others.
struct Counted {
  int passes = 0;
  int passes_that_run = 0;
  int others = 0;
  int others_that_run = 0;
};
Counted count(const Plan& plan, Granularity granularity) {
  const StageProgram stage = lower(plan, granularity).stages.front();
  Counted counted;
  for (const ProgramOp& op : stage.operations) {
    const bool pass = runs_a_layer(op.role);
    const int runs = has_kernel(stage, op) ? 1 : 0;
    (pass ? counted.passes : counted.others) += 1;
    (pass ? counted.passes_that_run : counted.others_that_run) += runs;
  }
  return counted;
}

// A layer's single kernels were bound as if each were the whole pass.
TEST(HasKernel, IsForPassesOfWholeLayersOnly) {
  Layout layout;
  layout.zero_stage = 3;
  layout.dp_shard = 2;
  layout.recompute = Recompute::full;
  const Plan plan = laptop_plan("fsdp2", layout, 2, false);
  const Counted layers = count(plan, Granularity::layer);
  EXPECT_GT(layers.passes, 0);
  EXPECT_EQ(layers.passes_that_run, layers.passes);
  EXPECT_EQ(layers.others_that_run, layers.others);
  const Counted kernels = count(plan, Granularity::kernel);
  EXPECT_GT(kernels.passes, layers.passes);
  EXPECT_EQ(kernels.passes_that_run, 0);
  EXPECT_EQ(kernels.others_that_run, kernels.others);
}

// Nothing of such a program is bound.
TEST(ProgramBinderDeathTest, RefusesAProgramOfSingleKernels) {
  Layout layout;
  layout.zero_stage = 0;
  const Plan plan = laptop_plan("shardwise", layout, 1, false);
  const StepProgram kernels = lower(plan, Granularity::kernel);
  AbortSignal abort;
  run_ranks(1, abort, [&](World& world) {
    BoundRank rank(plan, world, stand_in_kernels(plan));
    EXPECT_DEATH(ProgramBinder(rank.parts(), kernels.stages.front(), 0),
                 "maker != nullptr.*fwd\\.layer0\\.mb0\\.");
  });
}

// A backward pass that does not wait for the gather of its weights may read them too early.
TEST(ProgramBinderDeathTest, RefusesAProgramThatIsNotSound) {
  // The other rank is a thread, whose locks of the allocator a forked process would wait for.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Layout layout;
  layout.zero_stage = 3;
  layout.dp_shard = 2;
  const Plan plan = laptop_plan("shardwise", layout, 1, false);
  AbortSignal abort;
  run_ranks(2, abort, [&](World& world) {
    BoundRank rank(plan, world, stand_in_kernels(plan));
    if (world.rank() != 0) return;
    StageProgram hasty = rank.program();
    for (ProgramOp& op : hasty.operations) {
      if (name_of(hasty, op) == "bwd.layer1.mb0") op.waits = {};
    }
    EXPECT_DEATH(ProgramBinder(rank.parts(), hasty, 0), "problems.empty.*bwd\\.layer1\\.mb0 .*may");
  });
}

TEST(HasKernel, IsForMessagesAndNotForHalvesOfABackwardPass) {
  Layout layout;
  layout.pp = 2;
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
    layout.schedule = schedule;
    const Plan plan = laptop_plan("shardwise", layout, 2, true);
    int messages = 0;
    int halves = 0;
    for (const StageProgram& stage : lower(plan).stages) {
      for (const ProgramOp& op : stage.operations) {
        const bool half = op.role == OpRole::backward_input || op.role == OpRole::backward_weight;
        messages += op.message >= 0 ? 1 : 0;
        halves += half ? 1 : 0;
        EXPECT_EQ(has_kernel(stage, op), !half) << name_of(stage, op);
      }
    }
    EXPECT_EQ(messages, 8);
    EXPECT_EQ(halves > 0, schedule == PipelineSchedule::zb_h1);
  }
}

}  // namespace
}  // namespace shardwise::exec::test
