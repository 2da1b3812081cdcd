#include "planner/spec/machine/cluster_reader.h"

#include <gtest/gtest.h>

#include "planner/spec/json/catalogue.h"

namespace shardwise {
namespace {

TEST(FindCluster, ReadsEveryEntryOfTheCatalogue) {
  const std::vector<std::string> names = catalogue_names("clusters");
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Result<ClusterSpec> cluster = find_cluster(name);
    ASSERT_TRUE(cluster.ok()) << to_string(cluster.problems());
    EXPECT_EQ(cluster->name, name);
    EXPECT_FALSE(cluster->sources.empty());
  }
}

TEST(FindCluster, GivesTheFiguresOfTheFileInBaseUnits) {
  const Result<ClusterSpec> cluster = find_cluster("dgx-h100");
  ASSERT_TRUE(cluster.ok()) << to_string(cluster.problems());
  EXPECT_EQ(cluster->gpu.name, "h100-sxm");
  EXPECT_EQ(cluster->gpus_per_node, 8);
  ASSERT_EQ(cluster->tiers.size(), 2U);
  EXPECT_EQ(cluster->tiers[0].bandwidth, 450_GBps);
  EXPECT_EQ(cluster->tiers[0].in_network, InNetwork::nvls);
  EXPECT_EQ(cluster->tiers[1].bandwidth, 50_GBps);
  EXPECT_EQ(cluster->tiers[1].domain_size, kMostGpus);
}

TEST(WithGpus, TakesAnyCountTheLinksReach) {
  const Result<ClusterSpec> cluster = find_cluster("dgx-h100");
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(with_gpus(*cluster, 100)->nodes(), 13);
  EXPECT_FALSE(with_gpus(*cluster, 0).ok());
  const Result<ClusterSpec> absurd = with_gpus(*cluster, 1'000'000'000);
  ASSERT_FALSE(absurd.ok());
  EXPECT_EQ(absurd.problems().front().message,
            "1000000000 GPUs, but dgx-h100 can have 1 to 4194304");
}

TEST(WithGpus, TakesAsManyOfEachDomainThatSpansNodes) {
  const ClusterSpec racks = *find_cluster("gb200-nvl72");
  const auto domain = [&](std::int64_t gpus) {
    return with_gpus(racks, gpus)->tiers.front().domain_size;
  };
  EXPECT_EQ(domain(64), 72);  // of one domain
  EXPECT_EQ(domain(256), 64);
  EXPECT_EQ(domain(144), 72);
  EXPECT_EQ(domain(1024), 64);
  const std::int64_t nodes = 37;  // no equal parts of 3 to 6 domains
  EXPECT_EQ(domain(4 * nodes), 72);
  EXPECT_EQ(with_gpus(*find_cluster("dgx-h100"), 100)->tiers.front().domain_size, 8);
}

}  // namespace
}  // namespace shardwise
