// Pipelines: what stages hand each other changes nothing of what is computed.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/engine/trainer.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

Layout pipeline(std::int32_t pp, PipelineSchedule schedule, std::int32_t vpp = 1) {
  Layout layout;
  layout.pp = pp;
  layout.vpp = vpp;
  layout.schedule = schedule;
  return layout;
}

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe};

TEST(Pipeline, GivesTheBitsOfOneRank) {
  for (const std::int64_t num_microbatches : {1, 4}) {
    const Curve alone = train(deep_plan({}, num_microbatches), 5);
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    for (const PipelineSchedule schedule : kSchedules) {
      for (const std::int32_t pp : {2, 3, 4}) {
        EXPECT_EQ(train(deep_plan(pipeline(pp, schedule), num_microbatches), 5), alone)
            << name_of(schedule) << ", pp " << pp << ", " << num_microbatches;
      }
    }
  }
}

TEST(Pipeline, GivesTheBitsOfOneRankWhereAStageHasSeveralChunks) {
  const Curve alone = train(deep_plan({}, 6), 4);
  for (const auto& [pp, vpp] : {std::pair(2, 3), std::pair(3, 2)}) {
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::looped_bfs}) {
      EXPECT_EQ(train(deep_plan(pipeline(pp, schedule, vpp), 6), 4), alone)
          << name_of(schedule) << ", pp " << pp << ", vpp " << vpp;
    }
  }
}

TEST(Pipeline, GivesTheBitsOfOneStageOverEveryWayOfSharding) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const bool each : {true, false}) {
      Layout layout = data_parallel_layout(zero_stage, 2);
      layout.reduce_every_microbatch = each;
      const Curve whole = train(deep_plan(layout, 3), 4);
      for (const PipelineSchedule schedule : kSchedules) {
        layout.pp = 2;
        layout.schedule = schedule;
        EXPECT_EQ(train(deep_plan(layout, 3), 4), whole)
            << "ZeRO-" << zero_stage << ", " << name_of(schedule);
      }
    }
  }
}

TEST(Pipeline, GivesTheBitsOfOneStageOverReplicas) {
  for (const bool outer : {false, true}) {
    Layout layout = data_parallel_layout(3, 2, 2);
    layout.outer_shards_optimizer = outer;
    const Curve whole = train(deep_plan(layout, 2), 4);
    layout.pp = 2;
    EXPECT_EQ(train(deep_plan(layout, 2), 4), whole);
  }
}

TEST(Pipeline, GivesTheBitsOfOneRankInBf16) {
  const auto of = [](Layout layout) {
    Plan plan = deep_plan(layout, 4);
    plan.job.precision = DType::bf16;
    return train(plan, 4);
  };
  EXPECT_EQ(of(pipeline(2, PipelineSchedule::one_f_one_b)), of({}));
}

// What the head adds to the table and what the embedding does are summed apart, by micro-batch, and
// then added: rounded in another order than on one rank.
TEST(Pipeline, SumsATableOfTwoStagesWithinItsRounding) {
  const Curve alone = train(deep_plan({}, 4, true), 5);
  for (const PipelineSchedule schedule : kSchedules) {
    const Curve split = train(deep_plan(pipeline(3, schedule), 4, true), 5);
    ASSERT_EQ(split.losses.size(), alone.losses.size());
    EXPECT_EQ(split.losses[0], alone.losses[0]);
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      EXPECT_NEAR(split.losses[step], alone.losses[step], 1e-5 * std::abs(alone.losses[step]));
      EXPECT_NEAR(split.norms[step], alone.norms[step], 1e-4 * alone.norms[step]);
    }
  }
}

// Shards of the table begin elsewhere on the two stages: each rank has what both made of its part.
// Where a rank has one micro-batch, all ways of sharding have the bits of whole gradients.
TEST(Pipeline, SumsShardsOfATableOfTwoStages) {
  const auto of = [](Layout layout, std::int32_t pp) {
    layout.pp = pp;
    return train(deep_plan(layout, 1, true), 5);
  };
  for (const std::int32_t ranks : {2, 3}) {
    const Curve whole = of(data_parallel_layout(0, ranks), 2);
    const Curve one_stage = of(data_parallel_layout(0, ranks), 1);
    for (std::size_t step = 0; step < whole.losses.size(); ++step) {
      EXPECT_NEAR(whole.losses[step], one_stage.losses[step], 1e-5 * one_stage.losses[step]);
    }
    for (const int zero_stage : {1, 2, 3}) {
      EXPECT_EQ(of(data_parallel_layout(zero_stage, ranks), 2), whole)
          << "ZeRO-" << zero_stage << " over " << ranks;
    }
  }
  const Curve replicas = of(data_parallel_layout(0, 2, 2), 3);
  for (const int zero_stage : {1, 2, 3}) {
    for (const bool outer : {false, true}) {
      Layout layout = data_parallel_layout(zero_stage, 2, 2);
      layout.outer_shards_optimizer = outer;
      if (outer && zero_stage < 3) continue;
      EXPECT_EQ(of(layout, 3), replicas) << "ZeRO-" << zero_stage << (outer ? ", HFSDP" : "");
    }
  }
}

// Micro-batches whose targets are ignored count for nothing, whichever stage knows of it.
TEST(Pipeline, HasTheLossOfTheTokensThatCount) {
  TrainOptions options;
  options.ignored_token = 'c';
  const Curve alone = train(deep_plan({}, 4), 4, options);
  EXPECT_EQ(train(deep_plan(pipeline(2, PipelineSchedule::gpipe), 4), 4, options), alone);
}

// Ranks of data parallelism have other numbers of tokens; stages have those of the last one.
TEST(Pipeline, DividesGradientsByTheTokensThatCount) {
  TrainOptions options;
  options.ignored_token = 'c';
  for (const std::int32_t ranks : {1, 2}) {
    Layout layout = data_parallel_layout(ranks > 1 ? 1 : 0, ranks);
    const auto of = [&](std::int32_t pp, bool per_token) {
      layout.pp = pp;
      Plan plan = deep_plan(layout, 3);
      plan.job.calculate_per_token_loss = per_token;
      return train(plan, 4, options);
    };
    const Curve alone = of(1, true);
    EXPECT_NE(alone, of(1, false));
    for (const std::int32_t pp : {2, 3}) EXPECT_EQ(of(pp, true), alone) << pp << " x " << ranks;
  }
}

}  // namespace
}  // namespace shardwise::exec::test
