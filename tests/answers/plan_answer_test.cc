#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/simulated_steps.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {
namespace {

PlanQuestion gpt2_on_a_node() {
  PlanQuestion q;
  q.model = *load_model("gpt2");
  q.clusters = {*with_gpus(*find_cluster("aws-p4d"), 16)};
  q.engines = {find_engine("megatron_ddp"), find_engine("fsdp2")};
  q.job.global_batch_size = 64;
  q.job.sequence_length = 1024;
  q.threads = 2;
  return q;
}

TEST(Planning, GivesTheStepsOfSimulations) {
  const PlanQuestion q = gpt2_on_a_node();
  const PlanAnswer found = *answer(q);
  ASSERT_EQ(found.best.size(), 10U);
  for (const PlanRow& row : found.best) {
    ASSERT_TRUE(row.simulated.has_value());
    const Simulation made = simulate(plan_of(q, row));
    EXPECT_EQ(*row.simulated, made.report.step_time);
    EXPECT_NEAR(row.tokens_per_s, 64 * 1024 / made.report.step_time.value(), 1e-6);
  }
}

// No row among them has a time of another clock: one could then lead a table that is sorted by it.
TEST(Planning, SimulatesAllRowsThatAreListed) {
  PlanQuestion q = gpt2_on_a_node();
  q.top = 24;
  const PlanAnswer found = *answer(q);
  ASSERT_EQ(found.best.size(), 24U);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_TRUE(found.best[i].simulated.has_value()) << i;
    if (i > 0) {
      EXPECT_GE(found.best[i].step(), found.best[i - 1].step());
    }
  }
}

TEST(Planning, SimulatesAsManyRowsAsTakeNoLongerThanTheFirstMay) {
  PlanQuestion q = gpt2_on_a_node();
  PlanRow row;
  row.cluster = q.clusters.data();
  row.candidate.layout.dp_shard = 16;
  q.job.global_batch_size = 16 * 17'000;
  std::vector<Plan> plans(14, plan_of(q, row));
  ASSERT_EQ(layer_passes_of_step(plans.front()), 238'000);
  EXPECT_EQ(count_to_simulate(plans), 10U);
  EXPECT_EQ(count_to_simulate(std::span(plans).first(4)), 4U);
  plans[9].job.global_batch_size = 16 * 18'000;
  EXPECT_EQ(count_to_simulate(plans), 0U);
}

// A page has the plan's step from the simulation that it shows.
TEST(Planning, SimulatesNoStepThatIsKnown) {
  PlanQuestion q = gpt2_on_a_node();
  const Layout known = answer(q)->best[3].candidate.layout;
  std::size_t asked = 0;
  q.known_step = [&](const Plan& plan) -> std::optional<Seconds> {
    ++asked;
    if (plan.layout != known) return std::nullopt;
    return 1_us;
  };
  const PlanAnswer found = *answer(q);
  EXPECT_GE(asked, found.best.size());
  EXPECT_EQ(found.best.front().candidate.layout, known);
  EXPECT_EQ(found.best.front().simulated, 1_us);
  EXPECT_GT(found.best[1].step(), 1_us);
}

TEST(Planning, IsTheSameForAnyNumberOfThreads) {
  PlanQuestion q = gpt2_on_a_node();
  const PlanAnswer two = *answer(q);
  q.threads = 1;
  const PlanAnswer one = *answer(q);
  ASSERT_EQ(one.best.size(), two.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].candidate.layout, two.best[i].candidate.layout);
    EXPECT_EQ(one.best[i].step(), two.best[i].step());
  }
}

// What would take long to simulate is ranked by the step-time model, and the reason is given.
TEST(Planning, RanksByTheModelWhereASimulationWouldTakeLong) {
  PlanQuestion q = gpt2_on_a_node();
  q.job.global_batch_size = 1 << 21;
  q.locks = {{"micro_batch_size", "1"}, {"pp", "1"}};
  const PlanAnswer found = *answer(q);
  ASSERT_FALSE(found.best.empty());
  EXPECT_THAT(found.unsimulated, ::testing::HasSubstr("is not simulated to rank it"));
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_FALSE(found.best[i].simulated.has_value());
    if (i == 0) continue;
    EXPECT_GE(found.best[i].step(), found.best[i - 1].step());
  }
}

TEST(Planning, TakesOneEngineAndListsItsLayoutsAlone) {
  PlanQuestion q = gpt2_on_a_node();
  q.takes_engine = true;
  const PlanAnswer found = *answer(q);
  ASSERT_FALSE(found.best.empty());
  for (const PlanRow& row : found.best) EXPECT_EQ(row.engine, found.best.front().engine);
  for (const PlanRow& row : found.front) EXPECT_EQ(row.engine, found.best.front().engine);
  EXPECT_FALSE(found.front.empty());
  for (const EngineAnswer& each : found.engines) {
    ASSERT_TRUE(each.best.has_value());
    EXPECT_GE(each.best->step(), found.best.front().step());
  }
}

}  // namespace
}  // namespace shardwise::sim
