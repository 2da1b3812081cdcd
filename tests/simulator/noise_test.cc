#include "simulator/noise.h"

#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/goodput.h"
#include "planner/spec/cluster_reader.h"
#include "simulator/engine.h"
#include "simulator/failed_links.h"
#include "simulator/shared_engine.h"
#include "tests/simulator/hand_made.h"

namespace shardwise::sim {
namespace {

Workload every_rank(const HandMade& made) {
  Layout layout;
  layout.dp_shard = 8;
  return all_ranks(made.program, made.prices, layout);
}

TEST(Noise, RepeatsForASeedAndDiffersBetweenSeeds) {
  const HandMade made = fsdp(10);
  Workload work = every_rank(made);
  work.noise = {1, 0.05, {}, {}};
  const double first = run_alone(work).length();
  EXPECT_EQ(run_alone(work).length(), first);
  work.noise.seed = 2;
  EXPECT_NE(run_alone(work).length(), first);
}

TEST(Noise, GivesBothEnginesTheSameTimesWhenNothingIsShared) {
  const HandMade made = fsdp(10);
  Workload work = every_rank(made);
  work.noise = {7, 0.1, {}, {}};
  EXPECT_EQ(run_alone(work).end, run_shared(work).end);
}

TEST(Noise, LengthensAStepInWhichRanksWaitForOneAnother) {
  const HandMade made = fsdp(40);
  Workload work = every_rank(made);
  const double quiet = run_alone(work).length();
  work.noise = {3, 0.1, {}, {}};
  EXPECT_GT(run_alone(work).length(), quiet);
}

TEST(Noise, MakesAllRanksAsSlowAsTheSlowest) {
  HandMade made;
  const auto kernel = made.add(0, Stream::compute, 2);
  made.collective(0, Stream::reduce_scatter, 1, GroupKind::dp_shard, {kernel});
  Workload work = every_rank(made);
  work.noise.compute_factor.assign(8, 1.0);
  work.noise.compute_factor[5] = 1.5;
  EXPECT_EQ(run_alone(work).length(), 4);
}

Plan on_nodes(const char* cluster, std::int32_t ranks) {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster(cluster), ranks);
  plan.engine = *find_engine("fsdp2");
  plan.layout.dp_shard = ranks;
  plan.layout.zero_stage = 3;
  plan.job.global_batch_size = ranks;
  plan.job.sequence_length = 512;  // communication is what takes the time
  return plan;
}

NoiseSpread with_failed_links(const Plan& plan, std::int64_t failed) {
  NoiseRules rules;
  rules.trials = 3;
  rules.failed_links = failed;
  return noise_spread(plan, {}, rules);
}

TEST(FailedLinks, CanBeAllButOneOfEachNode) {
  EXPECT_EQ(spare_links(on_nodes("dgx-h100", 16)), 14);
  EXPECT_EQ(spare_links(on_nodes("aws-p4d", 32)), 4 * 3);
  EXPECT_EQ(spare_links(on_nodes("gcp-a2-ultra", 16)), 0);  // one NIC a node
  EXPECT_EQ(spare_links(on_nodes("dgx-h100", 8)), 0);       // nothing leaves the node
  // 2 pods of 3,072 GPUs, each with 3,072 / 7 links to the other, besides the NICs.
  EXPECT_EQ(spare_links(on_nodes("meta-h100", 6144)), 768 * 7 + 2 * 437);
}

TEST(FailedLinks, SlowAStepThatItsNetworkHoldsUp) {
  const Plan plan = on_nodes("aws-p4d", 32);
  const Seconds sound = with_failed_links(plan, 0).p50;
  const Seconds one = with_failed_links(plan, 1).p50;
  EXPECT_GT(one / sound, 1.1);
  // A node with 3 of its 4 NICs is at most 4/3 as slow.
  EXPECT_LE(one / sound, 4.0 / 3 + 1e-9);
  // With all spare ones gone, what is on the links takes 4 times as long.
  const double all = with_failed_links(plan, spare_links(plan)).p50 / sound;
  EXPECT_GT(all, 2);
  EXPECT_LE(all, 4 + 1e-9);
}

TEST(FailedLinks, DoNotTouchTrafficInsideANode) {
  HandMade made;
  const auto gather = made.add(0, Stream::all_gather, 2);
  made.price(0, gather).link_share = {1, 0, 0, 0};
  Workload work = every_rank(made);
  work.noise.link_delay.assign(8, TierFactors{0, 2, 2, 2});
  EXPECT_EQ(run_shared(work).length(), 2);
}

TEST(FailedLinks, HoldUpTheGroupOfTheNodeThatLostThem) {
  HandMade made;
  const auto gather = made.collective(0, Stream::all_gather, 2, GroupKind::dp_shard);
  made.price(0, gather).link_share = {0, 0.75, 0, 0};
  Workload work = every_rank(made);
  work.noise.link_delay.assign(8, TierFactors{});
  work.noise.link_delay[3][1] = 2 / 3.0;  // half as long again for three quarters of a link
  EXPECT_EQ(run_shared(work).length(), 3);
}

// Daly's closed form of the same process.
TEST(SimulatedGoodput, ApproachesDalysFormula) {
  const FailureModel model = {Seconds(20'000), Seconds(120), Seconds(300)};
  const Goodput expected = best_goodput(model);
  const double found = simulated_goodput({20'000, 120, 300, expected.interval.value()}, 200'000, 1);
  EXPECT_NEAR(found, expected.share, 0.005);
}

}  // namespace
}  // namespace shardwise::sim
