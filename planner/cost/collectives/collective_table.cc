#include "planner/cost/collectives/collective_table.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/collectives/collective_candidates.h"

namespace shardwise {
namespace {

/// What each way to do a collective takes for so many bytes.
struct Point {
  std::array<double, Candidates{}.all.size()> seconds{};
  std::size_t best = 0;
};

Point point_at(const GroupLinks& links, CollectiveKind kind, double bytes) {
  const Candidates found = candidates(links, kind, bytes);
  const double bound = bound_seconds(links, kind, bytes);
  Point point;
  for (std::size_t i = 0; i < found.count; ++i) {
    point.seconds[i] = std::max(bound, found.all[i].seconds());
    if (point.seconds[i] < point.seconds[point.best]) point.best = i;
  }
  return point;
}

DataParallelTables::Group group_prices(CollectiveTables& tables, const GroupShape& shape) {
  return {tables.price(CollectiveKind::all_gather, shape),
          tables.price(CollectiveKind::reduce_scatter, shape),
          tables.price(CollectiveKind::all_reduce, shape),
          {}};
}

}  // namespace

CollectiveTable::CollectiveTable(const ClusterSpec& cluster, CollectiveKind kind,
                                 const GroupShape& group) {
  if (group.ranks <= 1) return;
  a_byte_ = tier_traffic(cluster, kind, 1, group);
  const GroupLinks links = links_of(cluster, group);
  Point from = point_at(links, kind, start_of(0));
  for (std::size_t i = 0; i + 1 < kPoints; ++i) {
    const Point to = point_at(links, kind, start_of(i + 1));
    const double length = start_of(i + 1) - start_of(i);
    const auto line_of = [&](std::size_t candidate) -> Line {
      const double begin = from.seconds[candidate];
      return {begin, (to.seconds[candidate] - begin) / length};
    };
    lines_[i] = {line_of(from.best), line_of(to.best)};
    from = to;
  }
}

GroupShape ends_of(const GroupShape& group) {
  GroupShape ends = group;
  ends.ranks = 2;
  for (std::int32_t i = 0; i < group.tiers; ++i) {
    const auto tier = static_cast<std::size_t>(i);
    ends.span[tier] = group.span[tier] == group.ranks ? 2 : 1;
    ends.least[tier] = ends.span[tier];
    ends.domains[tier] = 3 - ends.span[tier];
  }
  return ends;
}

std::size_t CollectiveTables::KeyHash::operator()(const Key& key) const {
  std::size_t hash = static_cast<std::size_t>(key.kind);
  const auto mix = [&](std::int32_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  };
  mix(key.group.ranks);
  for (std::size_t i = 0; i < kMaxTiers; ++i) {
    mix(key.group.span[i]);
    mix(key.group.concurrent[i]);
  }
  return hash;
}

CollectivePrice CollectiveTables::price(CollectiveKind kind, const GroupShape& group) {
  if (group.ranks <= 1) return {};
  const auto [at, made] = tables_.try_emplace({kind, group});
  if (made) at->second = CollectiveTable(*cluster_, kind, group);
  return CollectivePrice(at->second);
}

DataParallelTables data_parallel_tables(CollectiveTables& tables, const DataParallelShapes& shapes,
                                        const DataParallelNeeds& needs) {
  DataParallelTables prices;
  const auto several = [](const GroupShape& shape) { return shape.ranks > 1; };
  prices.any = several(shapes.dense) || several(shapes.dense_outer) ||
               (needs.experts && several(shapes.routed));
  prices.dense = group_prices(tables, shapes.dense);
  prices.dense_outer = group_prices(tables, shapes.dense_outer);
  if (needs.experts) {
    // Experts are sharded within one replica.
    prices.routed = group_prices(tables, shapes.routed);
    prices.routed_outer = prices.dense_outer;
  }
  if (needs.fp32_accumulation) {
    prices.dense.all_to_all = tables.price(CollectiveKind::all_to_all, shapes.dense);
    if (needs.experts) {
      prices.routed.all_to_all = tables.price(CollectiveKind::all_to_all, shapes.routed);
    }
  }
  prices.reshard = tables.price(CollectiveKind::all_gather, shapes.reshard);
  prices.tp_all_reduce = tables.price(CollectiveKind::all_reduce, shapes.tp);
  if (shapes.pp.ranks > 1) {
    prices.tied_all_reduce = tables.price(CollectiveKind::all_reduce, ends_of(shapes.pp));
  }
  prices.world_all_reduce = tables.price(CollectiveKind::all_reduce, shapes.world);
  return prices;
}

DataParallelTables data_parallel_tables(CollectiveTables& tables, const ClusterSpec& cluster,
                                        const Layout& layout, const DataParallelNeeds& needs) {
  const auto shape = [&](GroupKind kind) { return group_shape(cluster, layout, kind); };
  DataParallelShapes shapes;
  shapes.dense = shape(GroupKind::dp_shard_cp);
  shapes.dense_outer = shape(GroupKind::dp_replicate);
  if (needs.experts) shapes.routed = shape(GroupKind::edp_shard);
  if (layout.reshards_to_groups()) shapes.reshard = shape(GroupKind::reshard);
  shapes.tp = shape(GroupKind::tp);
  shapes.pp = shape(GroupKind::pp);
  shapes.world = shape(GroupKind::world);
  return data_parallel_tables(tables, shapes, needs);
}

}  // namespace shardwise
