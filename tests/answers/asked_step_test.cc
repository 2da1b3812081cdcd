// A step to simulate, and a cluster that grows, from texts.
#include "answers/asked_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "answers/growth.h"
#include "tests/support/diagnostic_paths.h"
#include "tests/support/scratch.h"

namespace shardwise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AskedStep asked_llama_step() {
  AskedStep asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.cluster = "dgx-h100";
  asked.job.engine = "fsdp2";
  asked.layout.texts = {{"tp", "2"}};
  return asked;
}

TEST(AskedStep, IsOfTheTexts) {
  const Result<PlannedStep> step = read_step(asked_llama_step());
  ASSERT_TRUE(step.ok()) << to_string(step.problems());
  EXPECT_EQ(step->plan.layout.tp, 2);
  EXPECT_EQ(step->plan.layout.world(), 8);
  EXPECT_EQ(step->plan.engine.name, "fsdp2");
  EXPECT_THAT(step_problems(asked_llama_step(), step->plan), IsEmpty());
}

TEST(AskedStep, IsOfAFileThatNothingElseSets) {
  const test::Scratch scratch;
  const Plan plan = read_step(asked_llama_step())->plan;
  AskedStep asked;
  asked.plan = scratch.write_bytes("plan.json", to_json(plan));
  const Result<PlannedStep> step = read_step(asked);
  ASSERT_TRUE(step.ok()) << to_string(step.problems());
  EXPECT_EQ(digest(step->plan), digest(plan));

  asked.job.engine = "fsdp2";
  asked.layout.texts = {{"tp", "2"}, {"pp", ""}};
  const Result<PlannedStep> both = read_step(asked);
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(test::paths_of(both.problems()), ElementsAre("--engine", "--tp"));
  EXPECT_THAT(both.problems().front().message, HasSubstr("plan.json already sets it"));
}

TEST(AskedStep, NeedsAModelAndACluster) {
  AskedStep asked = asked_llama_step();
  asked.job.cluster.clear();
  EXPECT_THAT(test::paths_of(read_step(asked).problems()), ElementsAre("PLAN"));
}

TEST(AskedStep, HasTheOptionsOfItsTexts) {
  AskedStep asked = asked_llama_step();
  const SimulationOptions usual;
  const SimulationOptions taken = options_of(asked);
  EXPECT_EQ(taken.granularity, usual.granularity);
  EXPECT_EQ(taken.contention, usual.contention);
  EXPECT_EQ(taken.host, usual.host);
  asked.granularity = "kernel";
  asked.transport = "copy_engines";
  asked.contention = "off";
  asked.host = "off";
  asked.one_connection = true;
  asked.all_ranks = true;
  const SimulationOptions other = options_of(asked);
  EXPECT_EQ(other.granularity, Granularity::kernel);
  EXPECT_EQ(other.transport, Transport::copy_engines);
  EXPECT_FALSE(other.contention);
  EXPECT_FALSE(other.host);
  EXPECT_TRUE(other.in_issue_order);
  EXPECT_TRUE(other.all_ranks);
}

TEST(AskedStep, TakesReductionsOutOfSwitches) {
  AskedStep asked = asked_llama_step();
  Plan plan = read_step(asked)->plan;
  const auto reduces = [&] {
    return std::ranges::any_of(plan.cluster.tiers, [](const LinkTier& tier) {
      return tier.in_network != InNetwork::none;
    });
  };
  set_network(asked, plan);
  EXPECT_TRUE(reduces());
  asked.in_network = "off";
  set_network(asked, plan);
  EXPECT_FALSE(reduces());
}

TEST(AskedStep, RefusesFailuresThatCutRanksOff) {
  AskedStep asked = asked_llama_step();
  asked.job.gpus = "64";
  const Plan plan = read_step(asked)->plan;
  asked.noise.failed.links = 1'000'000;
  EXPECT_THAT(test::paths_of(step_problems(asked, plan)), ElementsAre("--failed-links"));
  asked.noise.failed = {.links = 0, .switches = 1'000'000};
  EXPECT_THAT(test::paths_of(step_problems(asked, plan)), ElementsAre("--failed-switches"));
  asked.noise.failed = {.links = 1, .switches = 0};
  EXPECT_THAT(step_problems(asked, plan), IsEmpty());
  asked.contention = "off";
  EXPECT_THAT(step_problems(asked, plan).front().message, HasSubstr("needs contention"));
}

TEST(NoiseProblems, AreSlowNodesThatAreNoneOrTooMany) {
  const Plan plan = read_step(asked_llama_step())->plan;  // one node
  NoiseRules noise;
  EXPECT_THAT(noise_problems(noise, plan), IsEmpty());
  noise.slow_nodes = 1;
  EXPECT_EQ(noise_problems(noise, plan).size(), 1U);
  noise.slow_factor = 1.5;
  EXPECT_THAT(noise_problems(noise, plan), IsEmpty());
  noise.slow_nodes = 2;
  EXPECT_THAT(noise_problems(noise, plan).front().message, HasSubstr("the job has 1"));
}

// On one node both ways are the same layout; beyond, the hybrid has a replica a node.
TEST(Growth, DoublesFromOneNode) {
  AskedStep asked = asked_llama_step();
  asked.batch = BatchWhenOpen::one_microbatch;
  const Result<std::vector<GrowthPoint>> points = growth(asked, 8, 40);
  ASSERT_TRUE(points.ok()) << to_string(points.problems());
  ASSERT_EQ(points->size(), 3U);
  std::int64_t gpus = 8;
  for (const GrowthPoint& each : *points) {
    EXPECT_EQ(each.gpus, gpus);
    EXPECT_EQ(each.full.layout.world(), gpus);
    EXPECT_EQ(each.full.layout.dp_replicate, 1);
    EXPECT_EQ(each.hybrid.layout.dp_shard, 4);
    EXPECT_EQ(each.hybrid.layout.dp_replicate, gpus / 8);
    EXPECT_EQ(each.hybrid.global_batch_size, gpus / 2);
    gpus *= 2;
  }
  EXPECT_EQ(points->front().full.step_time, points->front().hybrid.step_time);
  EXPECT_THAT(misfits(*points, &GrowthPoint::full), IsEmpty());
  std::vector<GrowthPoint> large = *points;
  large[1].hybrid.verdict.fit = Fit::does_not_fit;
  EXPECT_THAT(misfits(large, &GrowthPoint::hybrid), ElementsAre(16));
}

TEST(Growth, RefusesLessThanANode) {
  EXPECT_THAT(test::paths_of(growth(asked_llama_step(), 8, 4).problems()), ElementsAre("--growth"));
}

}  // namespace
}  // namespace shardwise::sim
