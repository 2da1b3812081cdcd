// Two plans as a diff of fields with the price of each.
#include "planner/question/plan_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Plan sharded() {
  Plan plan = {
      *load_model("llama-3.1-8b"), *find_cluster("dgx-h100"), {}, *find_engine("fsdp2"), {}};
  plan.cluster.gpus = 8;
  plan.layout.zero_stage = 3;
  plan.layout.dp_shard = 8;
  plan.job.global_batch_size = 32;
  EXPECT_TRUE(check_plan(plan).empty()) << to_string(check_plan(plan));
  return plan;
}

StepReport estimated(const Plan& plan) {
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

std::vector<std::string> keys_of(const PricedDifference& row) {
  std::vector<std::string> keys;
  for (const PricedDifference::Field& field : row.fields) keys.push_back(field.key);
  return keys;
}

TEST(PlanDifferences, OfEqualPlansAreNone) {
  const PlanDifferences found = plan_differences(sharded(), sharded());
  EXPECT_THAT(found.rows, IsEmpty());
  EXPECT_EQ(found.time_left, Seconds(0));
  EXPECT_EQ(found.memory_left, Bytes(0));
}

TEST(PlanDifferences, PriceEachFieldAlone) {
  const Plan a = sharded();
  Plan b = a;
  b.layout.recompute = Recompute::full;
  b.job.sequence_length = 2048;
  const PlanDifferences found = plan_differences(a, b);
  ASSERT_EQ(found.rows.size(), 2U);
  for (const PricedDifference& row : found.rows) {
    ASSERT_TRUE(row.legal);
    Plan alone = a;
    if (row.fields.front().key == "recompute") {
      EXPECT_EQ(row.fields.front().first, "none");
      EXPECT_EQ(row.fields.front().second, "full");
      alone.layout.recompute = Recompute::full;
    } else {
      EXPECT_EQ(row.fields.front().key, "sequence_length");
      alone.job.sequence_length = 2048;
    }
    EXPECT_EQ(row.time, estimated(alone).step_time - estimated(a).step_time);
    EXPECT_EQ(row.memory, estimated(alone).verdict.point - estimated(a).verdict.point);
  }
}

// With tp 2 alone the degrees would multiply to 16 of 8 GPUs.
TEST(PlanDifferences, PriceFieldsTogetherThatAreLegalTogetherOnly) {
  const Plan a = sharded();
  Plan b = a;
  b.layout.tp = 2;
  b.layout.dp_shard = 4;
  b.layout.recompute = Recompute::full;
  ASSERT_TRUE(check_plan(b).empty()) << to_string(check_plan(b));
  const PlanDifferences found = plan_differences(a, b);
  ASSERT_EQ(found.rows.size(), 2U);
  const auto bound = std::ranges::find(
      found.rows, 2U, [](const PricedDifference& row) { return row.fields.size(); });
  ASSERT_NE(bound, found.rows.end());
  EXPECT_THAT(keys_of(*bound), ElementsAre("tp", "dp_shard"));
  EXPECT_TRUE(bound->legal);
}

TEST(PlanDifferences, AddUpToTheDifferenceOfThePlans) {
  const Plan a = sharded();
  Plan b = a;
  b.layout.tp = 2;
  b.layout.dp_shard = 4;
  b.layout.micro_batch_size = 2;
  b.layout.recompute = Recompute::full;
  b.job.precision = DType::fp8;
  const PlanDifferences found = plan_differences(a, b);
  Seconds time = found.time_left;
  Bytes memory = found.memory_left;
  for (const PricedDifference& row : found.rows) {
    time += row.time;
    memory += row.memory;
  }
  EXPECT_NEAR(time.value(), (estimated(b).step_time - estimated(a).step_time).value(), 1e-9);
  EXPECT_EQ(memory, estimated(b).verdict.point - estimated(a).verdict.point);
}

TEST(PlanDifferences, NameModelClusterAndEngine) {
  const Plan a = sharded();
  Plan b = a;
  b.engine = *find_engine("fsdp1");
  b.cluster = *find_cluster("dgx-h200");
  b.cluster.gpus = 8;
  b.model = *load_model("llama-3-8b");
  const PlanDifferences found = plan_differences(a, b);
  std::vector<std::string> keys;
  for (const PricedDifference& row : found.rows) {
    for (const PricedDifference::Field& field : row.fields) keys.push_back(field.key);
  }
  EXPECT_THAT(keys, testing::UnorderedElementsAre("engine", "cluster", "model"));
}

}  // namespace
}  // namespace shardwise
