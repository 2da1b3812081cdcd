#include "planner/spec/cluster_reader.h"

#include <gtest/gtest.h>

#include "planner/spec/catalogue.h"

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

}  // namespace
}  // namespace shardwise
