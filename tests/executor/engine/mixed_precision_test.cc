// Where numbers are rounded to bf16 decides what a run computes; how states are spread does not.
#include <gtest/gtest.h>

#include <cmath>

#include "planner/engines/engines.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

Plan mixed_plan(const char* engine, int zero_stage, int dp_shard, std::int64_t num_microbatches,
                bool fp32_gradients) {
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.dp_shard = dp_shard;
  layout.fp32_gradients = fp32_gradients;
  Plan plan = laptop_plan(engine, layout, num_microbatches, true);
  plan.job.precision = DType::bf16;
  return plan;
}

// Weights are rounded once a step, gradients nowhere.
TEST(MixedPrecision, GivesTheSameBitsWhereGradientsAreFp32) {
  const Curve alone = train(mixed_plan("shardwise", 0, 1, 4, true), 5);
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp"}) {
    for (const int zero_stage : find_engine(name)->zero_stages) {
      EXPECT_EQ(train(mixed_plan(name, zero_stage, 4, 1, true), 5), alone)
          << name << " ZeRO-" << zero_stage;
    }
  }
  EXPECT_EQ(train(mixed_plan("shardwise", 3, 2, 2, true), 5), alone);
}

// A main weight in two halves is the same number.
TEST(MixedPrecision, GivesTheSameBitsWithRemaindersOfMainWeights) {
  for (const bool fp32_gradients : {true, false}) {
    const Curve whole = train(mixed_plan("shardwise", 0, 4, 1, fp32_gradients), 12);
    for (const int zero_stage : {0, 1, 2, 3}) {
      Plan halves = mixed_plan("shardwise", zero_stage, 4, 1, fp32_gradients);
      halves.layout.store_param_remainders = true;
      EXPECT_EQ(train(halves, 12), whole) << "ZeRO-" << zero_stage;
    }
  }
}

/// bf16 weights without fp32 main weights.
Plan rounded_plan(int zero_stage, int dp_shard, std::int64_t num_microbatches) {
  Plan plan = mixed_plan("shardwise", zero_stage, dp_shard, num_microbatches, true);
  plan.job.main_dtype = DType::bf16;
  return plan;
}

// What is drawn for a weight does not depend on who has it.
TEST(MixedPrecision, RoundsBf16WeightsByChanceToTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::int64_t kSteps = 20;
  const Curve alone = train(rounded_plan(0, 1, 4), kSteps);
  EXPECT_LT(alone.losses.back(), 0.9 * alone.losses.front());
  for (const int zero_stage : {0, 1, 2, 3}) {
    EXPECT_EQ(train(rounded_plan(zero_stage, 4, 1), kSteps), alone) << "ZeRO-" << zero_stage;
  }
  EXPECT_EQ(train(rounded_plan(3, 2, 2), kSteps), alone);
  EXPECT_NE(train(mixed_plan("shardwise", 0, 1, 4, true), kSteps), alone);
}

// Gradients are rounded when they are made and after each addition over ranks. FSDP1 keeps their
// sum in fp32, which changes nothing while it is one of one micro-batch.
TEST(MixedPrecision, GivesTheSameBitsWhereGradientsAreMadeAndReducedInBf16) {
  const Curve whole = train(mixed_plan("shardwise", 0, 4, 1, false), 5);
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp1"}) {
    for (const int zero_stage : find_engine(name)->zero_stages) {
      EXPECT_EQ(train(mixed_plan(name, zero_stage, 4, 1, false), 5), whole)
          << name << " ZeRO-" << zero_stage;
    }
  }
}

// Bf16 shards round every sum that they take in, FSDP's fp32 shards do not.
TEST(MixedPrecision, TellsBf16ShardsFromFp32OnesOnceMicroBatchesAreAdded) {
  const Curve narrow = train(mixed_plan("shardwise", 2, 2, 3, false), 5);
  EXPECT_EQ(train(mixed_plan("megatron_fsdp", 3, 2, 3, false), 5), narrow);
  EXPECT_NE(train(mixed_plan("fsdp1", 3, 2, 3, false), 5), narrow);
}

// FSDP2 makes gradients in bf16 and reduces them in fp32, wherever its micro-batches run.
TEST(MixedPrecision, Fsdp2RoundsGradientsOnlyWhenTheyAreMade) {
  const Curve alone = train(mixed_plan("fsdp2", 3, 1, 4, true), 5);
  EXPECT_EQ(train(mixed_plan("fsdp2", 3, 4, 1, true), 5), alone);
  EXPECT_EQ(train(mixed_plan("fsdp2", 3, 2, 2, true), 5), alone);
  Plan once = mixed_plan("fsdp2", 3, 2, 2, true);
  once.layout.reduce_every_microbatch = false;
  Plan kept = once;
  kept.layout.reshard_after_forward = false;
  EXPECT_EQ(train(once, 5), train(kept, 5));
}

// Gradients of 16 bits travel by all-to-all and are summed in fp32: one rounding of the sum where
// a ring has one for each rank.
TEST(MixedPrecision, SumsReduceScattersInFp32WhereThePlanSaysSo) {
  const auto plan = [](const char* engine, int zero_stage) {
    Plan made = mixed_plan(engine, zero_stage, 4, 1, false);
    made.job.reduce_scatter_with_fp32_accumulation = true;
    return made;
  };
  const Curve summed = train(plan("shardwise", 1), 5);
  EXPECT_NE(summed, train(mixed_plan("shardwise", 1, 4, 1, false), 5));
  EXPECT_EQ(train(plan("shardwise", 2), 5), summed);
  EXPECT_EQ(train(plan("shardwise", 3), 5), summed);
  EXPECT_EQ(train(plan("megatron_ddp", 1), 5), summed);
  Plan buckets = plan("megatron_ddp", 1);
  buckets.engine.bucket_elements = 700;
  buckets.engine.bucket_elements_per_rank = 0;
  EXPECT_EQ(train(buckets, 5), summed);
}

// A bf16 number is within 2^-9 of what it rounds: the losses of a few steps stay within ten such
// roundings of fp32's, whatever is rounded besides the weights.
TEST(MixedPrecision, StaysNearFp32) {
  constexpr double kBound = 10.0 / 512;
  Plan exact = mixed_plan("shardwise", 0, 4, 1, true);
  exact.job.precision = DType::fp32;
  const Curve fp32 = train(exact, 8);
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const bool fp32_gradients : {true, false}) {
      const int zero_stage = find_engine(name)->zero_stages.back();
      const Curve near = train(mixed_plan(name, zero_stage, 4, 1, fp32_gradients), 8);
      EXPECT_NE(near, fp32) << name;
      for (std::size_t s = 0; s < near.losses.size(); ++s) {
        EXPECT_NEAR(near.losses[s] / fp32.losses[s], 1, kBound) << name << ", step " << s;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::exec::test
