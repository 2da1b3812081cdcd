#include "planner/search/space/priced_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

Plan three_axes() {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 32);
  plan.engine = *find_engine("megatron_ddp");
  plan.job.global_batch_size = 64;
  plan.layout.tp = 4;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 4;
  plan.layout.zero_stage = 1;
  plan.layout.sequence_parallel = true;
  return plan;
}

// Every one of the 720 orders costs what one of the list does, and each of the list is one.
TEST(PricedOrders, AreTheCostsOfAllOrders) {
  const Plan plan = three_axes();
  std::set<double> brute;
  RankOrder order = plan.layout.order;
  std::ranges::sort(order);
  do {
    Layout layout = plan.layout;
    layout.order = order;
    brute.insert(
        evaluate(plan.model, plan.cluster, plan.job, plan.engine, layout).step_time.value());
  } while (std::ranges::next_permutation(order).found);
  const std::vector<PricedOrder> priced = priced_orders(plan);
  std::set<double> listed;
  for (const PricedOrder& each : priced) listed.insert(each.cost.step_time.value());
  EXPECT_EQ(listed, brute);
  EXPECT_GT(listed.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(priced, {},
                                     [](const PricedOrder& each) { return each.cost.step_time; }));
}

TEST(PricedOrders, HaveThePlansOwn) {
  Plan plan = three_axes();
  plan.layout.order = {Axis::pp, Axis::dp_replicate, Axis::ep, Axis::dp_shard, Axis::cp, Axis::tp};
  const auto priced = priced_orders(plan);
  EXPECT_NE(std::ranges::find(priced, plan.layout.order, &PricedOrder::order), priced.end());
}

TEST(PricedOrders, AreOneWhereEverythingIsInANode) {
  Plan plan = three_axes();
  plan.cluster = *with_gpus(plan.cluster, 8);
  plan.layout.dp_shard = 1;
  EXPECT_EQ(priced_orders(plan).size(), 1U);
}

TEST(PricedOrders, AreNoneWhenStopped) {
  const std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(priced_orders(three_axes(), stop.get_token()).empty());
}

}  // namespace
}  // namespace shardwise
