#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/space/shape_cache.h"
#include "planner/search/space/space.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// Where each group of a layout lies on the links: all that costs depend on of an order.
struct GroupShapes {
  GroupShape tp;
  GroupShape cp;
  GroupShape ep;
  GroupShape etp;
  GroupShape pp;
  GroupShape dp_shard_cp;
  GroupShape dp_replicate;
  GroupShape edp_shard;
  GroupShape reshard;
  friend bool operator==(const GroupShapes&, const GroupShapes&) = default;
};

struct PlacedOrder {
  RankOrder order;
  GroupShapes shapes;
};

/// The orders of `candidates` that put some group of `layout` on other links than every order
/// before. Several orders cost the same; the first of them stands for all.
std::vector<PlacedOrder> distinct_orders(ShapeCache& shapes, const Layout& layout, bool experts,
                                         const std::vector<RankOrder>& candidates);

}  // namespace shardwise
