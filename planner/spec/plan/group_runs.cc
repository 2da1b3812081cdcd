#include "planner/spec/plan/group_runs.h"

#include <algorithm>
#include <numeric>

namespace shardwise {
namespace {

std::int64_t degree(const Layout& layout, Axis axis) {
  switch (axis) {
    case Axis::tp:
      return layout.tp;
    case Axis::cp:
      return layout.cp;
    case Axis::dp_shard:
      return layout.dp_shard;
    case Axis::dp_replicate:
      return layout.dp_replicate;
    case Axis::pp:
      return layout.pp;
    case Axis::ep:
      break;  // lives on the ranks of the other axes
  }
  return 1;
}

bool belongs(GroupKind kind, Axis axis) {
  switch (kind) {
    case GroupKind::tp:
      return axis == Axis::tp;
    case GroupKind::cp:
      return axis == Axis::cp;
    case GroupKind::pp:
      return axis == Axis::pp;
    case GroupKind::dp_shard:
      return axis == Axis::dp_shard;
    case GroupKind::dp_replicate:
      return axis == Axis::dp_replicate;
    case GroupKind::dp_shard_cp:
      return axis == Axis::dp_shard || axis == Axis::cp;
    case GroupKind::dp_cp:
      return axis == Axis::dp_shard || axis == Axis::dp_replicate || axis == Axis::cp;
    case GroupKind::stage:
      return axis != Axis::pp;
    case GroupKind::world:
      return true;
    case GroupKind::ep:
    case GroupKind::etp:
    case GroupKind::edp:
    case GroupKind::edp_shard:
    case GroupKind::reshard:
      break;
  }
  return false;
}

GroupRuns dense_runs(const Layout& layout, GroupKind kind) {
  GroupRuns runs;
  std::int64_t stride = 1;
  for (const Axis axis : layout.order) {
    const std::int64_t size = degree(layout, axis);
    if (belongs(kind, axis)) runs.add({stride, size});
    stride *= size;
  }
  return runs;
}

GroupRuns expert_runs(const Layout& layout, GroupKind kind) {
  GroupRuns runs;
  runs.inner = 1;
  runs.pp = layout.pp;
  for (const Axis axis : layout.order) {
    if (axis == Axis::pp) break;
    runs.inner *= degree(layout, axis);
  }
  std::int64_t stride = 1;
  for (const Axis axis : layout.order) {
    if (axis == Axis::tp) {
      if (kind == GroupKind::etp) runs.add({stride, layout.etp});
      stride *= layout.etp;
    } else if (axis == Axis::ep) {
      if (kind == GroupKind::ep) runs.add({stride, layout.ep});
      stride *= layout.ep;
    } else if (axis == Axis::dp_shard) {
      const std::int64_t edp = layout.edp();
      const std::int64_t instances = std::gcd(edp, std::int64_t{layout.dp_replicate});
      if (kind == GroupKind::edp) runs.add({stride, edp});
      if (kind == GroupKind::edp_shard) runs.add({stride, edp / instances});
      stride *= edp;
    }
  }
  return runs;
}

}  // namespace

void GroupRuns::add(RankRun run) {
  if (run.size == 1) return;
  if (count > 0) {
    RankRun& last = runs[static_cast<std::size_t>(count - 1)];
    if (last.stride * last.size == run.stride) {
      last.size *= run.size;
      return;
    }
  }
  runs[static_cast<std::size_t>(count++)] = run;
}

std::int64_t GroupRuns::size() const {
  std::int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= runs[static_cast<std::size_t>(i)].size;
  return product;
}

GroupRuns GroupRuns::neighbours(std::int64_t ranks) const {
  GroupRuns some = *this;
  for (int i = 0; i < count; ++i) {
    RankRun& run = some.runs[static_cast<std::size_t>(i)];
    if (ranks % run.size == 0) {
      ranks /= run.size;
      continue;
    }
    if (run.size % ranks != 0) break;
    some.count = ranks > 1 ? i + 1 : i;
    if (ranks > 1) run.size = ranks;
    ranks = 1;
    break;
  }
  if (ranks > 1) some.count = 0;
  for (int i = some.count; i < count; ++i) some.runs[static_cast<std::size_t>(i)] = {};
  return some;
}

GroupRuns group_runs(const Layout& layout, GroupKind kind) {
  switch (kind) {
    case GroupKind::reshard:
      return dense_runs(layout, GroupKind::dp_shard_cp)
          .neighbours(std::max<std::int64_t>(1, layout.reshard_after_forward));
    case GroupKind::ep:
    case GroupKind::etp:
    case GroupKind::edp:
    case GroupKind::edp_shard: {
      GroupRuns runs = expert_runs(layout, kind);
      if (layout.pp == 1) runs.inner = 0;
      return runs;
    }
    default:
      return dense_runs(layout, kind);
  }
}

}  // namespace shardwise
