#include "planner/search/space/shape_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

// Orders and degrees at random, most of which straddle the nodes, asked of one cache.
TEST(ShapeCache, SaysWhatGroupShapeSays) {
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 720);
  constexpr GroupKind kKinds[] = {
      GroupKind::tp, GroupKind::cp,          GroupKind::ep,           GroupKind::etp,
      GroupKind::pp, GroupKind::dp_shard_cp, GroupKind::dp_replicate, GroupKind::edp_shard};
  ShapeCache shapes(cluster);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    Layout layout;
    std::int32_t left = 720;
    for (std::int32_t Layout::*degree :
         {&Layout::tp, &Layout::pp, &Layout::cp, &Layout::dp_shard}) {
      const std::int32_t choices[] = {1, 2, 3, 4, 5, 6};
      const std::int32_t ways = choices[random() % 6];
      if (left % ways != 0) continue;
      layout.*degree = ways;
      left /= ways;
    }
    layout.dp_replicate = left;
    if (layout.dp_shard % 2 == 0) layout.ep = 2;
    std::ranges::shuffle(layout.order, random);
    for (const GroupKind kind : kKinds) {
      const GroupShape expected = group_shape(cluster, layout, kind);
      EXPECT_EQ(shapes.shape(layout, kind), expected) << i;
      EXPECT_EQ(shapes.shape(layout, kind), expected) << i;  // the second time from memory
    }
  }
}

}  // namespace
}  // namespace shardwise
