#include <gtest/gtest.h>

#include "planner/cost/collectives/collective_table.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

struct Group {
  ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 64);
  GroupShape shape;

  explicit Group(std::int32_t ranks) {
    Layout layout;
    layout.dp_shard = ranks;
    layout.pp = 64 / ranks;
    shape = group_shape(cluster, layout, GroupKind::dp_shard_cp);
  }
};

TEST(CollectiveTable, IsExactAtItsPoints) {
  for (const int ranks : {2, 8, 16, 64}) {
    const Group g(ranks);
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const CollectiveTable table(g.cluster, kind, g.shape);
      for (std::int64_t bytes = 256; bytes <= std::int64_t{1} << 40; bytes *= 2) {
        EXPECT_DOUBLE_EQ(table(static_cast<double>(bytes)).value(),
                         collective_time(g.cluster, kind, Bytes(bytes), g.shape).value());
        const double between = 1.5 * static_cast<double>(bytes);
        EXPECT_DOUBLE_EQ(table(between).value(),
                         collective_time(g.cluster, kind, Bytes(bytes * 3 / 2), g.shape).value());
      }
    }
  }
}

TEST(CollectiveTable, NeverBeatsTheBoundAndStaysNearTheModel) {
  for (const int ranks : {2, 8, 16, 64}) {
    const Group g(ranks);
    const CollectiveTable table(g.cluster, CollectiveKind::all_gather, g.shape);
    for (double bytes = 300; bytes < 1e13; bytes *= 1.37) {
      const Bytes whole(static_cast<std::int64_t>(bytes));
      const double t = table(bytes).value();
      EXPECT_GE(t * (1 + 1e-12),
                collective_bound(g.cluster, CollectiveKind::all_gather, whole, g.shape).value());
      const double model =
          collective_time(g.cluster, CollectiveKind::all_gather, whole, g.shape).value();
      EXPECT_NEAR(t / model, 1, 0.01) << bytes;
    }
  }
}

// Rings and parallel aggregated trees take a time that is linear in bytes: where one takes over
// from another between two points, the table changes with it (D5: 2 % on 128 GPUs of dgx-b300).
TEST(CollectiveTable, ChangesFromOneAlgorithmToAnotherWhereTheModelDoes) {
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-b300"), 128);
  Layout layout;
  layout.dp_shard = 128;
  const GroupShape shape = group_shape(cluster, layout, GroupKind::dp_shard_cp);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const CollectiveTable table(cluster, kind, shape);
    for (std::int64_t bytes = 1'000'000; bytes < 2'000'000'000; bytes += bytes / 16) {
      const double model = collective_time(cluster, kind, Bytes(bytes), shape).value();
      EXPECT_NEAR(table(static_cast<double>(bytes)).value() / model, 1, 1e-9) << bytes;
    }
  }
}

TEST(CollectiveTable, OfOneRankTakesNoTime) {
  const CollectiveTable table;
  EXPECT_EQ(table(1e9), Seconds(0));
  EXPECT_EQ(table(0), Seconds(0));
}

TEST(EndsOf, AreTwoRanksThatShareTheTiersWhichHoldTheWholeGroup) {
  const Group across(64);
  const GroupShape ends = ends_of(across.shape);
  EXPECT_EQ(ends.ranks, 2);
  EXPECT_EQ(ends.span[0], 1);
  EXPECT_EQ(ends.span[static_cast<std::size_t>(ends.tiers - 1)], 2);
  const Group within(8);
  EXPECT_EQ(ends_of(within.shape).span[0], 2);
}

}  // namespace
}  // namespace shardwise
