// Collectives on every machine of the catalogue.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "planner/cost/collectives/collective.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

constexpr CollectiveKind kCatalogueKinds[] = {
    CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
    CollectiveKind::all_to_all, CollectiveKind::broadcast,      CollectiveKind::send_recv};
constexpr unsigned kCatalogueSeed = 20261121;

double unit(std::mt19937_64& random) {
  return static_cast<double>(random()) / static_cast<double>(std::mt19937_64::max());
}

/// A group of any kind in a layout of any size, whole nodes or not.
GroupShape some_group(const ClusterSpec& cluster, std::mt19937_64& random) {
  const auto count = [&](int low, int high) {
    return static_cast<std::int32_t>(low + static_cast<int>(unit(random) * (high - low + 0.999)));
  };
  Layout layout;
  layout.tp = count(1, 12);
  layout.dp_shard = count(2, 40);
  layout.pp = count(1, 4);
  const GroupKind kinds[] = {GroupKind::tp, GroupKind::dp_shard, GroupKind::pp, GroupKind::world};
  return group_shape(cluster, layout, kinds[count(0, 3)]);
}

// Every machine of the catalogue, groups that lie on one tier or across several.
TEST(CollectiveTime, NeverBeatsTheBoundOnTheCataloguesMachines) {
  std::mt19937_64 random(kCatalogueSeed);
  for (const std::string& name : catalogue_names("clusters")) {
    const Result<ClusterSpec> cluster = find_cluster(name);
    ASSERT_TRUE(cluster.ok()) << name;
    for (int i = 0; i < 300; ++i) {
      const GroupShape group = some_group(*cluster, random);
      const Bytes bytes(static_cast<std::int64_t>(std::exp2(36.0 * unit(random))));
      for (const CollectiveKind kind : kCatalogueKinds) {
        const Seconds time = collective_time(*cluster, kind, bytes, group);
        EXPECT_GE(time, collective_bound(*cluster, kind, bytes, group))
            << name << " " << name_of(kind) << " of " << bytes.value() << " B among " << group.ranks
            << ", seed " << kCatalogueSeed;
      }
    }
  }
}

// More ranks on the same tiers are more steps.
TEST(CollectiveTime, OfSmallBuffersGrowsWithRanksOnTheCataloguesMachines) {
  for (const std::string& name : catalogue_names("clusters")) {
    const Result<ClusterSpec> known = find_cluster(name);
    ASSERT_TRUE(known.ok()) << name;
    if (known->tiers.front().domain_size < 4) continue;
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
      Seconds before;
      for (std::int32_t ranks = 2; ranks <= known->tiers.front().domain_size && ranks <= 64;
           ranks *= 2) {
        Layout layout;
        layout.tp = ranks;
        const GroupShape group = group_shape(*known, layout, GroupKind::tp);
        const Seconds time = collective_time(*known, kind, Bytes(64), group);
        EXPECT_GT(time, before) << name << " " << name_of(kind) << " among " << ranks;
        before = time;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
