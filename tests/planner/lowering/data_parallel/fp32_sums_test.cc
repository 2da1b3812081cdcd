#include <gtest/gtest.h>

#include "planner/lowering/price.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

// Megatron-LM's reduce_scatter_with_fp32_accumulation: an all-to-all of the bucket in 16 bits, a
// sum of what arrived in fp32, and the sum cast into the shard.

Plan summed(const EngineProfile& engine, int zero_stage, std::int64_t m, std::int64_t layers = 8) {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.fp32_gradients = false;
  Plan plan = small_plan(engine, layout, m, layers);
  plan.job.reduce_scatter_with_fp32_accumulation = true;
  return plan;
}

std::int64_t operations_of_role(const StageProgram& stage, OpRole role) {
  std::int64_t count = 0;
  for (const ProgramOp& op : stage.operations) count += op.role == role ? 1 : 0;
  return count;
}

TEST(Fp32Sums, MoveTheBytesOfANarrowReduceScatterByAllToAll) {
  for (const EngineProfile& engine : {megatron_ddp(), shardwise_engine()}) {
    for (const int zero_stage : engine.zero_stages) {
      if (zero_stage == 0) continue;
      for (const std::int64_t m : {1, 3}) {
        const Plan plan = summed(engine, zero_stage, m);
        ASSERT_TRUE(is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout));
        const StepProgram program = lower(plan);
        EXPECT_EQ(problems_of(program), "") << engine.name << zero_stage;
        const StageProgram& stage = program.stages[0];
        const std::int64_t times = zero_stage >= 2 ? m : 1;
        EXPECT_EQ(wire_bytes(stage, OpRole::reduce), times * 2 * plan.model.parameter_count());
        for (const ProgramOp& op : stage.operations) {
          if (op.role != OpRole::reduce) continue;
          EXPECT_EQ(stage.costs[static_cast<std::size_t>(op.cost)].collectives[0].kind,
                    CollectiveKind::all_to_all);
        }
        EXPECT_EQ(operations_of_role(stage, OpRole::sum),
                  operations_of_role(stage, OpRole::reduce));
      }
    }
  }
}

// 2 bytes read of each element that arrived, 4 written, 4 read and 2 written of each of 1/8 of
// them.
TEST(Fp32Sums, ReadWhatArrivedAndWriteTheShard) {
  const Plan plan = summed(shardwise_engine(), 1, 1);
  const StageProgram stage = lower(plan).stages[0];
  double bytes = 0;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != OpRole::sum) continue;
    bytes += stage.costs[static_cast<std::size_t>(op.cost)].kernels[0].bytes;
  }
  EXPECT_EQ(bytes, (2 + (4 + 4 + 2) / 8.0) * static_cast<double>(plan.model.parameter_count()));
}

// Megatron drains the bucket before when it dispatches the next: one bucket that arrived is alive.
TEST(Fp32Sums, KeepOneBucketThatArrived) {
  const Plan plan = summed(megatron_ddp(), 1, 1, 64);
  const StageProgram stage = lower(plan).stages[0];
  ASSERT_GT(operations_of_role(stage, OpRole::reduce), 3);
  std::int64_t alive = 0;
  for (const ProgramOp& op : stage.operations) {
    if (op.role == OpRole::reduce) {
      EXPECT_EQ(alive++, 0);
    } else if (op.role == OpRole::sum) {
      EXPECT_EQ(--alive, 0);
      EXPECT_EQ(op.stream, Stream::compute);
    }
  }
}

std::string breach(const Plan& plan) {
  const Diagnostics found =
      check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  return found.empty() ? "" : found.front().message + " (" + found.front().hint + ")";
}

TEST(Fp32Sums, AreRefusedWhereThereIsNothingToSumOrTheEngineCannot) {
  Plan plan = summed(megatron_ddp(), 1, 1);
  EXPECT_EQ(breach(plan), "");
  plan.layout.fp32_gradients = true;
  EXPECT_EQ(breach(plan), "gradients are sent in fp32 already (use --fp32-gradients=false)");
  plan = summed(megatron_ddp(), 0, 1);
  EXPECT_EQ(breach(plan), "ZeRO stage 0 reduces without scattering (use --zero-stage 1 or more)");
  plan = summed(megatron_ddp(), 1, 1);
  plan.layout.dp_shard = 4;
  plan.layout.dp_replicate = 2;
  EXPECT_EQ(breach(plan),
            "sums within one replica, not 2 (NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/"
            "param_and_grad_buffer.py:233) (use --dp-replicate 1)");
  plan = summed(fsdp2(), 3, 1);
  EXPECT_EQ(breach(plan), "fsdp2 cannot sum reduce-scatters of 16 bits in fp32 ()");
}

}  // namespace
}  // namespace shardwise::test
