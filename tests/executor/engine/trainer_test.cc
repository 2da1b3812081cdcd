#include "executor/engine/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

// One rank that runs 4 micro-batches adds their gradients in the order in which 4 ranks of one each
// add theirs.
TEST(Trainer, GivesTheSameBitsForEveryZeroStageAndNumberOfRanks) {
  for (const bool tied : {false, true}) {
    const Curve alone = train(laptop_plan("shardwise", data_parallel_layout(0, 1), 4, tied), 6);
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    for (const int zero_stage : {0, 1, 2, 3}) {
      EXPECT_EQ(train(laptop_plan("shardwise", data_parallel_layout(zero_stage, 1), 4, tied), 6),
                alone);
      EXPECT_EQ(train(laptop_plan("shardwise", data_parallel_layout(zero_stage, 4), 1, tied), 6),
                alone)
          << "ZeRO-" << zero_stage << (tied ? ", tied" : "");
    }
  }
}

// Reduced every micro-batch, gradients are added in the order of the step whatever the split.
TEST(Trainer, GivesTheSameBitsForEverySplitWhereEveryMicroBatchIsReduced) {
  const Curve alone = train(laptop_plan("shardwise", data_parallel_layout(3, 1), 6, true), 5);
  for (const int zero_stage : {2, 3}) {
    EXPECT_EQ(train(laptop_plan("shardwise", data_parallel_layout(zero_stage, 2), 3, true), 5),
              alone);
    EXPECT_EQ(train(laptop_plan("shardwise", data_parallel_layout(zero_stage, 3), 2, true), 5),
              alone);
  }
}

// What differs between the engines is when bytes move and where they lie, not what is computed.
TEST(Trainer, GivesTheSameBitsForEveryEngine) {
  for (const bool tied : {false, true}) {
    const Curve alone = train(laptop_plan("shardwise", data_parallel_layout(0, 1), 4, tied), 4);
    for (const char* name : {"megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
      const EngineProfile& engine = *find_engine(name);
      for (const int zero_stage : engine.zero_stages) {
        EXPECT_EQ(train(laptop_plan(name, data_parallel_layout(zero_stage, 4), 1, tied), 4), alone)
            << name << " ZeRO-" << zero_stage << (tied ? ", tied" : "");
      }
    }
  }
}

// Buckets of a few tensors, which cross layers and end inside them.
TEST(Trainer, GivesTheSameBitsForBucketsOfAnySize) {
  const Curve alone = train(laptop_plan("shardwise", data_parallel_layout(0, 1), 2, true), 4);
  for (const std::int64_t elements : {1, 700, 3000, 1 << 20}) {
    for (const int zero_stage : {0, 1}) {
      Plan plan = laptop_plan("megatron_ddp", data_parallel_layout(zero_stage, 2), 1, true);
      plan.engine.bucket_elements = elements;
      plan.engine.bucket_elements_per_rank = 0;
      EXPECT_EQ(train(plan, 4), alone) << elements << " elements, ZeRO-" << zero_stage;
    }
  }
}

// Reduced on the last micro-batch, each rank adds its own first: a sum of its own, the same for all
// ways of sharding.
TEST(Trainer, GivesTheSameBitsWhereverGradientsAreReducedOnce) {
  const Curve whole = train(laptop_plan("shardwise", data_parallel_layout(0, 2), 3, true), 5);
  for (const char* name : {"shardwise", "megatron_fsdp"}) {
    for (const int zero_stage : {1, 2, 3}) {
      Layout layout = data_parallel_layout(zero_stage, 2);
      layout.reduce_every_microbatch = false;
      EXPECT_EQ(train(laptop_plan(name, layout, 3, true), 5), whole)
          << name << " ZeRO-" << zero_stage;
    }
  }
  EXPECT_EQ(train(laptop_plan("megatron_ddp", data_parallel_layout(1, 2), 3, true), 5), whole);
}

TEST(Trainer, GivesTheSameBitsWhetherUnitsAreReshardedPrefetchedOrDoubleBuffered) {
  const Curve alone = train(laptop_plan("shardwise", data_parallel_layout(0, 1), 4, true), 4);
  for (const char* name : {"shardwise", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const bool reshard : {true, false}) {
      for (const bool twice : {true, false}) {
        Layout layout = data_parallel_layout(3, 2);
        layout.reshard_after_forward = reshard;
        layout.double_buffer = twice;
        EXPECT_EQ(train(laptop_plan(name, layout, 2, true), 4), alone) << name;
      }
    }
  }
}

TEST(Trainer, GivesTheSameBitsWhereBackwardGathersPartsThatForwardLeft) {
  for (const std::int64_t num_microbatches : {1, 2}) {
    Layout layout = data_parallel_layout(3, 6);
    const Curve whole = train(laptop_plan("fsdp2", layout, num_microbatches, true), 3);
    for (const int ranks : {2, 3}) {
      layout.reshard_after_forward = ranks;
      EXPECT_EQ(train(laptop_plan("fsdp2", layout, num_microbatches, true), 3), whole) << ranks;
    }
    layout = data_parallel_layout(3, 4);
    layout.dp_replicate = 2;
    const Curve replicas = train(laptop_plan("fsdp2", layout, num_microbatches, false), 3);
    layout.reshard_after_forward = 2;
    EXPECT_EQ(train(laptop_plan("fsdp2", layout, num_microbatches, false), 3), replicas);
  }
}

// Replicas are summed after the ranks of each: (g0 + g1) + (g2 + g3).
TEST(Trainer, GivesTheSameBitsForEveryStrategyOverReplicas) {
  Layout layout = data_parallel_layout(0, 2);
  layout.dp_replicate = 2;
  const Curve whole = train(laptop_plan("shardwise", layout, 1, true), 4);
  for (const char* name : {"shardwise", "megatron_fsdp", "fsdp2"}) {
    for (const int zero_stage : find_engine(name)->zero_stages) {
      layout.zero_stage = static_cast<std::int8_t>(zero_stage);
      EXPECT_EQ(train(laptop_plan(name, layout, 1, true), 4), whole)
          << name << " ZeRO-" << zero_stage;
    }
  }
  // HFSDP: replicas share what the optimizer keeps.
  layout.zero_stage = 3;
  layout.outer_shards_optimizer = true;
  for (const char* name : {"shardwise", "megatron_fsdp"}) {
    EXPECT_EQ(train(laptop_plan(name, layout, 1, true), 4), whole) << name;
  }
}

// Counted tokens differ from micro-batch to micro-batch once one of them is ignored.
TEST(Trainer, DividesByTheTokensOfTheStepWhereTheLossIsPerToken) {
  TrainOptions options;
  options.ignored_token = 'c';
  std::vector<Curve> curves;
  for (const bool per_token : {true, false}) {
    std::vector<Curve> same;
    for (const int zero_stage : {0, 1, 2, 3}) {
      for (const int ranks : {1, 4}) {
        Plan plan =
            laptop_plan("shardwise", data_parallel_layout(zero_stage, ranks), 4 / ranks, true);
        plan.job.calculate_per_token_loss = per_token;
        same.push_back(train(plan, 4, options));
        EXPECT_EQ(same.back(), same.front()) << zero_stage << ", " << ranks << " ranks";
      }
    }
    curves.push_back(same.front());
  }
  EXPECT_NE(curves[0], curves[1]);
}

// Without ignored tokens both are one mean; gradients are divided before or after they are summed.
TEST(Trainer, MeansTheSamePerTokenWhereAllMicroBatchesHaveAsMany) {
  Plan plan = laptop_plan("shardwise", data_parallel_layout(1, 2), 2, true);
  const Curve divided_first = train(plan, 4);
  plan.job.calculate_per_token_loss = true;
  const Curve divided_last = train(plan, 4);
  for (std::size_t s = 0; s < divided_first.losses.size(); ++s) {
    EXPECT_NEAR(divided_last.losses[s] / divided_first.losses[s], 1, 1e-5);
    EXPECT_NEAR(divided_last.norms[s] / divided_first.norms[s], 1, 1e-4);
  }
}

TEST(Trainer, SaysWhoseGradientsAreNotNumbers) {
  TrainOptions options;
  options.checks.nan = true;
  options.optimizer.peak_learning_rate = 1e30;
  options.optimizer.clip_norm = 0;
  try {
    train(laptop_plan("shardwise", data_parallel_layout(1, 2), 1, false), 4, options);
    FAIL() << "the run went on";
  } catch (const IoError& broken) {
    EXPECT_THAT(broken.what(),
                testing::ContainsRegex("rank [01], (bwd|reduce)[.].*step [123].* not a number"));
  }
}

}  // namespace
}  // namespace shardwise::exec::test
