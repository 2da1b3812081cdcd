#include "planner/search/space/rank_orders.h"

#include <algorithm>

namespace shardwise {
namespace {

/// The axes that have more than one rank, in order, as digits: orders with the same number are the
/// same. Experts fold over the other axes: etp stands in the place of tp, edp in that of dp_shard.
std::uint32_t moving_axes(const Layout& layout, bool experts, const RankOrder& order) {
  std::uint32_t digits = 0;
  for (const Axis axis : order) {
    bool moves = false;
    switch (axis) {
      case Axis::tp:
        moves = layout.tp > 1 || (experts && layout.etp > 1);
        break;
      case Axis::cp:
        moves = layout.cp > 1;
        break;
      case Axis::ep:
        moves = experts && layout.ep > 1;
        break;
      case Axis::dp_shard:
        moves = layout.dp_shard > 1 || (experts && layout.edp() > 1);
        break;
      case Axis::dp_replicate:
        moves = layout.dp_replicate > 1;
        break;
      case Axis::pp:
        moves = layout.pp > 1;
        break;
    }
    if (moves) digits = digits * 8 + 1 + static_cast<std::uint32_t>(axis);
  }
  return digits;
}

GroupShapes shapes_of(ShapeCache& known, const Layout& layout, bool experts) {
  const auto shape = [&](GroupKind kind) { return known.shape(layout, kind); };
  GroupShapes shapes;
  shapes.tp = shape(GroupKind::tp);
  shapes.cp = shape(GroupKind::cp);
  shapes.pp = shape(GroupKind::pp);
  shapes.dp_shard_cp = shape(GroupKind::dp_shard_cp);
  shapes.dp_replicate = shape(GroupKind::dp_replicate);
  if (layout.reshard_after_forward > 1) shapes.reshard = shape(GroupKind::reshard);
  if (experts) {
    shapes.ep = shape(GroupKind::ep);
    shapes.etp = shape(GroupKind::etp);
    shapes.edp_shard = shape(GroupKind::edp_shard);
  }
  return shapes;
}

}  // namespace

std::vector<PlacedOrder> distinct_orders(ShapeCache& shapes, const Layout& layout, bool experts,
                                         const std::vector<RankOrder>& candidates) {
  std::vector<PlacedOrder> distinct;
  std::vector<std::uint32_t> seen;
  Layout placed = layout;
  for (const RankOrder& order : candidates) {
    const std::uint32_t moving = moving_axes(layout, experts, order);
    if (std::ranges::find(seen, moving) != seen.end()) continue;
    seen.push_back(moving);
    placed.order = order;
    const GroupShapes here = shapes_of(shapes, placed, experts);
    const bool known = std::ranges::any_of(
        distinct, [&](const PlacedOrder& other) { return other.shapes == here; });
    if (!known) distinct.push_back({order, here});
  }
  return distinct;
}

}  // namespace shardwise
