#include "simulator/comparison/kind_sums.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {
namespace {

TEST(KindSums, HaveEveryOperationOnceAndTheSumsOfTheList) {
  Plan plan = {
      *load_model("gpt2"), *find_cluster("dgx-h100"), {}, *find_engine("megatron_ddp"), {}};
  plan.layout.zero_stage = 1;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 4;
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 32;
  const Simulation made = simulate(plan);
  StepReport slower = made.report;
  for (OperationTime& each : slower.timeline->operations) each.time = each.time * 1.25;
  slower.timeline->operations.push_back({"unheard.of", 0, "compute", 1, Seconds(0.5), {}});
  const std::vector<ComparedTime> operations = compare(slower, made.report).operations;
  const std::vector<KindSum> sums = kind_sums(operations, made.program);
  std::set<std::size_t> seen;
  double first = 0;
  double second = 0;
  std::size_t unknown = 0;
  for (const KindSum& sum : sums) {
    double of_kind = 0;
    for (const std::size_t i : sum.operations) {
      EXPECT_TRUE(seen.insert(i).second);
      of_kind += operations[i].first.value();
    }
    EXPECT_NEAR(sum.first.value(), of_kind, 1e-12);
    first += sum.first.value();
    second += sum.second.value();
    unknown += sum.known ? 0 : sum.operations.size();
  }
  EXPECT_EQ(seen.size(), operations.size());
  EXPECT_EQ(unknown, 1U);
  double listed_first = 0;
  double listed_second = 0;
  for (const ComparedTime& each : operations) {
    listed_first += each.first.value();
    listed_second += each.second.value();
  }
  EXPECT_NEAR(first, listed_first, 1e-9);
  EXPECT_NEAR(second, listed_second, 1e-9);
  for (std::size_t i = 1; i < sums.size(); ++i) {
    EXPECT_GE(std::abs(sums[i - 1].difference().value()), std::abs(sums[i].difference().value()));
  }
}

}  // namespace
}  // namespace shardwise::sim
