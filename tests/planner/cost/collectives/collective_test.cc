#include "planner/cost/collectives/collective.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/even_group.h"

namespace shardwise {
namespace {

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                        CollectiveKind::all_reduce, CollectiveKind::all_to_all,
                                        CollectiveKind::broadcast,  CollectiveKind::send_recv};

ClusterSpec dgx_h100() {
  Result<ClusterSpec> cluster = find_cluster("dgx-h100");
  EXPECT_TRUE(cluster.ok());
  return *cluster;
}

/// One domain of `bandwidth`, with the default coefficients.
ClusterSpec one_tier(BytesPerSecond bandwidth, Seconds latency) {
  ClusterSpec cluster;
  LinkTier tier;
  tier.name = "link";
  tier.domain_size = kMostGpus;
  tier.bandwidth = bandwidth;
  tier.latency = latency;
  cluster.tiers.push_back(tier);
  return cluster;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) *
                     (static_cast<double>(engine_()) / static_cast<double>(std::mt19937_64::max()));
  }
  std::int64_t count(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

CollectiveCoefficients random_coefficients(Random& random) {
  CollectiveCoefficients c;
  for (const CoefficientName& name : kCoefficients) {
    const double most = std::min(name.high, 50.0);
    c.*name.field = random.between(name.low, most);
  }
  if (random.count(0, 2) == 0) c.ll128_share = 0;
  c.in_network_ranks = static_cast<double>(random.count(2, 9));
  return c;
}

/// Any machine: shared links, meshes, oversubscription, switches that reduce.
ClusterSpec random_cluster(Random& random) {
  ClusterSpec cluster;
  const std::int64_t tiers = random.count(1, 3);
  std::int64_t domain = 1;
  for (std::int64_t i = 0; i < tiers; ++i) {
    LinkTier tier;
    domain *= random.count(2, 9);
    tier.domain_size = i + 1 == tiers ? kMostGpus : domain;
    tier.bandwidth = BytesPerSecond(random.between(1e9, 1e12));
    tier.latency = Seconds(random.between(1e-7, 5e-5));
    tier.gpus_per_link = random.count(0, 1) == 0 ? 1 : static_cast<int>(random.count(1, 8));
    tier.oversubscription = random.count(0, 3) == 0 ? random.between(1, 8) : 1;
    tier.in_network = static_cast<InNetwork>(random.count(0, 2));
    tier.wiring = static_cast<Wiring>(random.count(0, i == 0 ? 1 : 0));
    tier.collectives.coefficients = random_coefficients(random);
    cluster.tiers.push_back(tier);
  }
  return cluster;
}

GroupShape random_group(const ClusterSpec& cluster, Random& random) {
  Layout layout;
  layout.tp = static_cast<std::int32_t>(random.count(1, 12));
  layout.dp_shard = static_cast<std::int32_t>(random.count(2, 40));
  layout.pp = static_cast<std::int32_t>(random.count(1, 4));
  const GroupKind kinds[] = {GroupKind::tp, GroupKind::dp_shard, GroupKind::pp, GroupKind::world};
  return group_shape(cluster, layout, kinds[random.count(0, 3)]);
}

TEST(CollectiveTime, NeverBeatsTheBoundOnAnyMachine) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ClusterSpec cluster = random_cluster(random);
    const GroupShape group = random_group(cluster, random);
    for (const CollectiveKind kind : kAllKinds) {
      const Bytes bytes(random.count(1, std::int64_t{1} << random.count(1, 31)));
      const Seconds time = collective_time(cluster, kind, bytes, group);
      const Seconds bound = collective_bound(cluster, kind, bytes, group);
      ASSERT_GE(time, bound) << name_of(kind);
      ASSERT_TRUE(std::isfinite(time.value())) << name_of(kind);
      ASSERT_EQ(bound > Seconds(0), group.ranks > 1) << name_of(kind);
    }
  }
}

TEST(CollectiveTime, GrowsWithBytesOnAnyMachine) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ClusterSpec cluster = random_cluster(random);
    const GroupShape group = random_group(cluster, random);
    for (const CollectiveKind kind : kAllKinds) {
      Seconds before;
      for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes += bytes / 2 + 1) {
        const Seconds time = collective_time(cluster, kind, Bytes(bytes), group);
        ASSERT_GE(time, before) << name_of(kind) << " " << bytes;
        before = time;
      }
    }
  }
}

TEST(CollectiveTime, OfSmallBuffersGrowsWithRanks) {
  const ClusterSpec cluster = dgx_h100();
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
        CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
    Seconds before;
    for (const std::int32_t ranks : {2, 4, 8}) {
      const Seconds time =
          collective_time(cluster, kind, 1_KiB, test::even_group(cluster, {ranks}));
      EXPECT_GT(time, before) << name_of(kind) << " " << ranks;
      before = time;
    }
    for (const std::int32_t nodes : {2, 4, 16, 128, 2048}) {
      const Seconds time =
          collective_time(cluster, kind, 1_KiB, test::even_group(cluster, {8, 8 * nodes}));
      EXPECT_GT(time, before) << name_of(kind) << " " << nodes << " nodes";
      before = time;
    }
  }
}

TEST(CollectiveTime, OfAllReduceIsNotBelowReduceScatterByTheSameRing) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ClusterSpec cluster = random_cluster(random);
    for (LinkTier& tier : cluster.tiers) {
      tier.in_network = InNetwork::none;
      tier.collectives.coefficients.copy_reduce_scatter =
          tier.collectives.coefficients.copy_all_reduce;
      tier.collectives.coefficients.tree_share = 1e-4;  // rings only
    }
    const GroupShape group = random_group(cluster, random);
    const Bytes bytes(random.count(1, std::int64_t{1} << 32));
    const auto time = [&](CollectiveKind kind) {
      return collective_time(cluster, kind, bytes, group);
    };
    if (group.tiers > 1 && group.span[0] == 1) continue;  // reduce-scatter has PAT there
    ASSERT_GE(time(CollectiveKind::all_reduce), time(CollectiveKind::reduce_scatter));
    ASSERT_LE(collective_bound(cluster, CollectiveKind::reduce_scatter, bytes, group),
              collective_bound(cluster, CollectiveKind::all_reduce, bytes, group));
  }
}

// The same ranks in one domain of the inner links, were it large enough. Four times the latency or
// more, as every network has against NVLink: NCCL chains the GPUs of a node, and a tree over few
// slower hops can beat a long chain of fast ones.
TEST(CollectiveTime, OfAGroupOnSlowerLinksIsNotBelowTheSameInsideOneDomain) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ClusterSpec nodes = one_tier(BytesPerSecond(random.between(1e11, 1e12)), 1_us);
    nodes.tiers[0].domain_size = random.count(1, 9);
    LinkTier outer = nodes.tiers[0];
    outer.domain_size = kMostGpus;
    outer.bandwidth = outer.bandwidth * random.between(0.01, 0.9);
    outer.latency = outer.latency * random.between(4, 20);
    nodes.tiers.push_back(outer);
    ClusterSpec whole = nodes;
    whole.tiers.pop_back();
    whole.tiers[0].domain_size = kMostGpus;
    Layout layout;
    layout.tp = static_cast<std::int32_t>(random.count(1, 9));
    layout.dp_shard = static_cast<std::int32_t>(random.count(2, 9));
    const Bytes bytes(random.count(1, std::int64_t{1} << random.count(4, 33)));
    for (const GroupKind group : {GroupKind::tp, GroupKind::dp_shard, GroupKind::world}) {
      for (const CollectiveKind kind : kAllKinds) {
        ASSERT_GE(collective_time(nodes, kind, bytes, group_shape(nodes, layout, group)),
                  collective_time(whole, kind, bytes, group_shape(whole, layout, group)))
            << name_of(kind) << " " << static_cast<int>(group);
      }
    }
  }
}

TEST(CollectiveTime, IsNothingForOneRankOrNoBytes) {
  const ClusterSpec cluster = dgx_h100();
  EXPECT_EQ(collective_time(cluster, CollectiveKind::all_reduce, 1_GiB, GroupShape{}), Seconds(0));
  EXPECT_EQ(
      collective_time(cluster, CollectiveKind::all_reduce, 0_B, test::even_group(cluster, {8})),
      Seconds(0));
}

TEST(CollectiveBound, CountsTheBytesEveryLinkMustCarry) {
  const ClusterSpec cluster = one_tier(100_GBps, 1_us);
  const GroupShape group = test::even_group(cluster, {4});
  const auto bound = [&](CollectiveKind kind) {
    return collective_bound(cluster, kind, 4_GB, group).value();
  };
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::all_gather), 0.03);
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::reduce_scatter), 0.03);
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::all_reduce), 0.06);
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::all_to_all), 0.03);
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::broadcast), 0.04);
  EXPECT_DOUBLE_EQ(bound(CollectiveKind::send_recv), 0.04);
}

TEST(CollectiveBound, OfAnAllReduceInTheSwitchIsTheBufferOnceEachWay) {
  ClusterSpec cluster = one_tier(100_GBps, 1_us);
  cluster.tiers[0].in_network = InNetwork::nvls;
  EXPECT_DOUBLE_EQ(
      collective_bound(cluster, CollectiveKind::all_reduce, 4_GB, test::even_group(cluster, {8}))
          .value(),
      0.04);
}

// Two nodes: each half of the buffer crosses once each way, by the 8 ports of a node together.
TEST(CollectiveBound, BetweenNodesIsByAllTheirPorts) {
  const ClusterSpec cluster = dgx_h100();
  EXPECT_DOUBLE_EQ(collective_bound(cluster, CollectiveKind::all_reduce, 400_GB,
                                    test::even_group(cluster, {8, 16}))
                       .value(),
                   1.0);
  // One rank a node has its own port only, while 7 other groups use the others.
  EXPECT_DOUBLE_EQ(collective_bound(cluster, CollectiveKind::all_reduce, 50_GB,
                                    test::even_group(cluster, {1, 2}))
                       .value(),
                   1.0);
}

TEST(CollectiveBound, SharesLinksAmongBusyGpus) {
  ClusterSpec cluster = dgx_h100();
  cluster.tiers[1].gpus_per_link = 4;  // 2 ports a node
  EXPECT_DOUBLE_EQ(collective_bound(cluster, CollectiveKind::all_gather, 100_GB,
                                    test::even_group(cluster, {1, 2}))
                       .value(),
                   4.0);
  GroupShape alone = test::even_group(cluster, {1, 2});
  alone.concurrent[1] = 1;
  EXPECT_DOUBLE_EQ(collective_bound(cluster, CollectiveKind::all_gather, 100_GB, alone).value(),
                   1.0);
}

TEST(CollectiveBound, OfAPairInAMeshIsByOneOfItsLinks) {
  ClusterSpec cluster = one_tier(448_GBps, 1_us);
  cluster.tiers[0].domain_size = 8;
  cluster.tiers[0].wiring = Wiring::mesh;
  const auto bound = [&](std::int32_t ranks) {
    return collective_bound(cluster, CollectiveKind::all_gather, 448_GB,
                            test::even_group(cluster, {ranks}))
        .value();
  };
  EXPECT_DOUBLE_EQ(bound(2), 0.5 * 7);
  EXPECT_DOUBLE_EQ(bound(8), 0.875);
}

TEST(CollectiveBound, GrowsWithOversubscription) {
  ClusterSpec cluster = dgx_h100();
  const GroupShape group = test::even_group(cluster, {8, 64});
  const Seconds full = collective_bound(cluster, CollectiveKind::all_to_all, 1_GB, group);
  cluster.tiers[1].oversubscription = 7;
  EXPECT_DOUBLE_EQ(collective_bound(cluster, CollectiveKind::all_to_all, 1_GB, group) / full, 7.0);
}

// tp = 6 on nodes of 8: a group of 2 + 4 sends by the 2 ports of its smaller part.
TEST(CollectiveTime, OfAStraddlingGroupIsByThePortsOfItsSmallerPart) {
  const ClusterSpec cluster = dgx_h100();
  Layout layout;
  layout.tp = 6;
  layout.dp_shard = 4;
  const GroupShape group = group_shape(cluster, layout, GroupKind::tp);
  const Bytes bytes = 6_GB;
  EXPECT_NEAR(collective_bound(cluster, CollectiveKind::all_gather, bytes, group).value(),
              6e9 * 4 / 6 / 100e9, 1e-9);
  EXPECT_GT(
      collective_time(cluster, CollectiveKind::all_gather, bytes, group),
      collective_time(cluster, CollectiveKind::all_gather, bytes, test::even_group(cluster, {6})));
}

TEST(CollectiveExplanation, ShowsEveryWayTheChosenOneAndItsSources) {
  const ClusterSpec cluster = dgx_h100();
  const GroupShape group = test::even_group(cluster, {8, 16});
  const CollectiveExplanation why =
      explain_collective(cluster, CollectiveKind::all_reduce, 1_GiB, group);
  EXPECT_EQ(why.time, collective_time(cluster, CollectiveKind::all_reduce, 1_GiB, group));
  EXPECT_EQ(why.algorithm, "nvls_tree");
  EXPECT_EQ(why.protocol, "Simple");
  EXPECT_NEAR(why.busbw_gb_per_s, 2.0 * 15 / 16 * 1.073741824 / why.time.value(), 1e-6);
  EXPECT_EQ(why.steps.front(), "all_reduce of 1073741824 bytes among 16 ranks");
  bool ring = false;
  for (const std::string& step : why.steps) ring = ring || step.starts_with("ring LL128: launch");
  EXPECT_TRUE(ring);
  EXPECT_EQ(why.sources.size(), 4U);
}

TEST(CollectiveExplanation, SaysWhenNothingWasMeasured) {
  const ClusterSpec cluster = one_tier(100_GBps, 1_us);
  const CollectiveExplanation why = explain_collective(cluster, CollectiveKind::all_gather, 1_MiB,
                                                       test::even_group(cluster, {8}));
  EXPECT_EQ(why.sources.back(), "link: default, not measured: constants of NCCL's tuning model");
}

double published_busbw(const std::string& name, CollectiveKind kind, Bytes bytes,
                       std::initializer_list<std::int32_t> spans) {
  const Result<ClusterSpec> cluster = find_cluster(name);
  EXPECT_TRUE(cluster.ok()) << name;
  return explain_collective(*cluster, kind, bytes, test::even_group(*cluster, spans))
      .busbw_gb_per_s;
}

// stas00/ml-engineering@744d01e18b79:network/README.md lines 923 to 976: 8 H200, all-reduce by NVLS
// 473 to 480 GB/s, all-gather by rings 361; 8 B200, all-reduce 838. NVIDIA GTC25 S72583: at most
// 232 among 8 A100 and 320 in an all-to-all among 8 H100.
TEST(CollectiveTime, OfLargeBuffersInANodeIsWhatIsPublished) {
  const auto busbw = published_busbw;
  EXPECT_NEAR(busbw("dgx-h100", CollectiveKind::all_reduce, 16_GiB, {8}), 480, 0.05 * 480);
  EXPECT_NEAR(busbw("dgx-h200", CollectiveKind::all_gather, 16_GiB, {8}), 361, 0.08 * 361);
  EXPECT_NEAR(busbw("dgx-b200", CollectiveKind::all_reduce, 16_GiB, {8}), 845, 0.05 * 845);
  EXPECT_NEAR(busbw("dgx-a100", CollectiveKind::all_reduce, 16_GiB, {8}), 232, 0.05 * 232);
  EXPECT_NEAR(busbw("dgx-h100", CollectiveKind::all_to_all, 16_GiB, {8}), 320, 0.05 * 320);
}

// NVIDIA GTC25 S72583, 32 GPUs on 4 nodes, at most: 192 GB/s of A100 with 200 Gb/s ports (24 in an
// all-to-all), 370 of H100 with 400 Gb/s ports (48), 480 with SHARP; 850 inside one GB200 NVL72.
// stas00/ml-engineering@744d01e18b79:network/README.md line 1402: 382 of B200 over EFA.
TEST(CollectiveTime, OfLargeBuffersBetweenNodesIsWhatIsPublished) {
  const auto busbw = published_busbw;
  EXPECT_NEAR(busbw("dgx-a100", CollectiveKind::all_reduce, 16_GiB, {8, 32}), 192, 0.05 * 192);
  EXPECT_NEAR(busbw("dgx-a100", CollectiveKind::all_to_all, 16_GiB, {8, 32}), 24, 0.05 * 24);
  EXPECT_NEAR(busbw("dgx-h100", CollectiveKind::all_reduce, 16_GiB, {8, 32}), 370, 0.05 * 370);
  EXPECT_NEAR(busbw("dgx-h100", CollectiveKind::all_to_all, 16_GiB, {8, 32}), 48, 0.05 * 48);
  EXPECT_NEAR(busbw("dgx-h100-sharp", CollectiveKind::all_reduce, 16_GiB, {8, 32}), 480,
              0.10 * 480);
  EXPECT_NEAR(busbw("gb200-nvl72", CollectiveKind::all_reduce, 16_GiB, {32}), 850, 0.15 * 850);
  EXPECT_NEAR(busbw("aws-p6-b200", CollectiveKind::all_reduce, 16_GiB, {8, 32}), 382, 0.05 * 382);
}

// The chart of H100 nodes with 400 Gb/s ports in stas00/ml-engineering@744d01e18b79, read to 6
// GB/s: from 4 to 512 nodes.
TEST(CollectiveTime, FallsWithNodesAsPublished) {
  const auto busbw = [](Bytes bytes, std::int32_t ranks) {
    return published_busbw("dgx-h100", CollectiveKind::all_reduce, bytes, {8, ranks});
  };
  EXPECT_NEAR(busbw(64_MiB, 64), 190, 20);
  EXPECT_NEAR(busbw(64_MiB, 512), 137, 12);
  EXPECT_NEAR(busbw(64_MiB, 4096), 112, 10);
  EXPECT_NEAR(busbw(1_GiB, 64), 329, 15);
  EXPECT_NEAR(busbw(1_GiB, 512), 304, 15);
  EXPECT_NEAR(busbw(1_GiB, 4096), 287, 15);
}

}  // namespace
}  // namespace shardwise
