#include "simulator/clock/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/advice/goodput.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/engine.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/workload/failed_links.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

Workload workload_of_every_rank(const HandMade& made) {
  Layout layout;
  layout.dp_shard = 8;
  return all_ranks(made.program, made.prices, layout);
}

TEST(Noise, RepeatsForASeedAndDiffersBetweenSeeds) {
  const HandMade made = fsdp(10);
  Workload work = workload_of_every_rank(made);
  work.noise = {1, 0.05, {}, {}};
  const double first = run_alone(work).length();
  EXPECT_EQ(run_alone(work).length(), first);
  work.noise.seed = 2;
  EXPECT_NE(run_alone(work).length(), first);
}

TEST(Noise, GivesBothEnginesTheSameTimesWhenNothingIsShared) {
  const HandMade made = fsdp(10);
  Workload work = workload_of_every_rank(made);
  work.noise = {7, 0.1, {}, {}};
  EXPECT_EQ(run_alone(work).end, run_shared(work).end);
}

TEST(Noise, LengthensAStepInWhichRanksWaitForOneAnother) {
  const HandMade made = fsdp(40);
  Workload work = workload_of_every_rank(made);
  const double quiet = run_alone(work).length();
  work.noise = {3, 0.1, {}, {}};
  EXPECT_GT(run_alone(work).length(), quiet);
}

TEST(Noise, MakesAllRanksAsSlowAsTheSlowest) {
  HandMade made;
  const auto kernel = made.add(0, Stream::compute, 2);
  made.collective(0, Stream::reduce_scatter, 1, GroupKind::dp_shard, {kernel});
  Workload work = workload_of_every_rank(made);
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
  rules.failed.links = failed;
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
  Workload work = workload_of_every_rank(made);
  work.noise.link_delay.assign(8, TierFactors{0, 2, 2, 2});
  EXPECT_EQ(run_shared(work).length(), 2);
}

TEST(FailedLinks, HoldUpTheGroupOfTheNodeThatLostThem) {
  HandMade made;
  const auto gather = made.collective(0, Stream::all_gather, 2, GroupKind::dp_shard);
  made.price(0, gather).link_share = {0, 0.75, 0, 0};
  Workload work = workload_of_every_rank(made);
  work.noise.link_delay.assign(8, TierFactors{});
  work.noise.link_delay[3][1] = 2 / 3.0;  // half as long again for three quarters of a link
  EXPECT_EQ(run_shared(work).length(), 3);
}

TEST(FailedSwitches, AreAmongOneForEachNicOfAUnitsNodes) {
  EXPECT_EQ(leaf_switches(on_nodes("dgx-h100", 8)), 0);
  EXPECT_EQ(leaf_switches(on_nodes("gcp-a2-ultra", 16)), 1);
  EXPECT_EQ(leaf_switches(on_nodes("dgx-h100", 256)), 8);
  EXPECT_EQ(leaf_switches(on_nodes("dgx-h100", 264)), 2 * 8);
  EXPECT_EQ(leaf_switches(on_nodes("aws-p4d", 32)), 4);  // 8 GPUs on 4 NICs
}

TEST(FailedSwitches, LeaveLinksToFailBesides) {
  // Each of 32 nodes has lost 1 of 8 NICs and keeps one.
  EXPECT_EQ(spare_links(on_nodes("dgx-h100", 256), 1), 32 * 6);
  EXPECT_EQ(spare_links(on_nodes("aws-p4d", 64), 2), 8);
}

// 33 nodes of 8 NICs are two units. One switch leaves the nodes of one unit 7 NICs: to each byte of
// one comes 1/7 more.
TEST(FailedSwitches, TakeANicFromEachNodeOfAUnit) {
  const Plan plan = on_nodes("dgx-h100", 264);
  const CollectiveCoefficients& c = plan.cluster.tiers[1].collectives.coefficients;
  const double reached = std::max(c.simple_share, c.ll128_share);
  const std::vector<TierFactors> one = network_left(plan, {0, 1}, 5).delays;
  const auto slow = [&](std::size_t rank) { return one[rank][1] != 0; };
  EXPECT_NE(slow(0), slow(263));
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    EXPECT_EQ(slow(rank), slow(rank < 256 ? 0 : 263));
    EXPECT_DOUBLE_EQ(one[rank][1], slow(rank) ? 1.0 / 7 / reached : 0);
    EXPECT_EQ(one[rank][0], 0);  // inside a node nothing is gone
  }
}

// A pod of 3,072 GPUs has 12 units of 8 switches and 438 up-links: 5 of them go with a switch.
TEST(FailedSwitches, TakeTheirUpLinksAsWell) {
  const Plan plan = on_nodes("meta-h100", 6144);
  const std::vector<TierFactors> one = network_left(plan, {0, 1}, 1).delays;
  const CollectiveCoefficients& c = plan.cluster.tiers[2].collectives.coefficients;
  const double reached = std::max(c.simple_share, c.ll128_share);
  const bool second = one.back()[2] > 0;
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    const double up = rank / 3072 == (second ? 1U : 0U) ? 7 * 5.0 / 433 / reached : 0;
    // Of its nodes' NICs those of 32 nodes lose more than the pod does.
    EXPECT_TRUE(std::abs(one[rank][2] - up) < 1e-12 || one[rank][2] > up);
  }
  std::int64_t slow_nodes = 0;
  for (std::size_t rank = 0; rank < one.size(); rank += 8) slow_nodes += one[rank][1] > 0 ? 1 : 0;
  EXPECT_EQ(slow_nodes, 32);
}

TEST(FailedSwitches, SlowAStepAsThatNicOfEveryNodeWould) {
  // 4 nodes of 4 NICs under one unit's switches.
  const Plan plan = on_nodes("aws-p4d", 32);
  NoiseRules rules;
  rules.trials = 1;
  const double sound = noise_spread(plan, {}, rules).p50.value();
  rules.failed.switches = 1;
  const double one = noise_spread(plan, {}, rules).p50.value();
  EXPECT_GT(one / sound, 1.1);
  EXPECT_LE(one / sound, 4.0 / 3 + 1e-9);
}

// With one of 16 switches left, one unit has lost all of its eight: the 32 nodes of the first, or
// the single node of the second.
TEST(FailedSwitches, CutOffTheNodesOfAUnitThatHasNoneLeft) {
  const Plan plan = on_nodes("dgx-h100", 264);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const NetworkLeft left = network_left(plan, {0, 15}, seed);
    EXPECT_TRUE(left.cut_off == 256 || left.cut_off == 8) << left.cut_off;
    EXPECT_TRUE(left.delays.empty());
    EXPECT_EQ(network_left(plan, {0, 16}, seed).cut_off, 264);
    EXPECT_EQ(network_left(plan, {0, 7}, seed).cut_off, 0);
  }
  // Nodes of one NIC hang on one switch.
  EXPECT_EQ(network_left(on_nodes("gcp-a2-ultra", 16), {0, 1}, 1).cut_off, 16);
}

TEST(FailedSwitches, LeaveGoodputTheReplicasThatAreNotCutOff) {
  const Plan plan = on_nodes("dgx-h100", 264);
  NoiseRules rules;
  rules.trials = 6;
  rules.mtbf_hours_per_gpu = 20'000;
  const NoiseSpread sound = noise_spread(plan, {}, rules);
  EXPECT_EQ(sound.stopped, 0);
  rules.failed.switches = 15;
  const NoiseSpread cut = noise_spread(plan, {}, rules);
  EXPECT_EQ(cut.stopped, 6);
  EXPECT_EQ(cut.p50, Seconds(0));
  // Of 264 replicas 8 or 256 are left in a trial.
  const double kept = cut.goodput / sound.goodput * 6;
  const double large = (kept - 6 * 8 / 264.0) / ((256 - 8) / 264.0);
  EXPECT_NEAR(large, std::round(large), 1e-9);
  EXPECT_GE(large, 0);
  EXPECT_LE(large, 6);
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
