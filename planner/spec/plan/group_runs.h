#pragma once

#include <array>
#include <cstdint>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// Ranks base + i * stride, 0 <= i < size.
struct RankRun {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  friend bool operator==(const RankRun&, const RankRun&) = default;
};

/// The ranks of a group, counted from the group's first rank: every sum of one element of each run.
/// Dense axes are laid out over ranks. The expert axes are laid out over the ranks of one pipeline
/// stage, which are not neighbours when pp is not the slowest axis: `inner` of them, then a gap.
struct GroupRuns {
  std::array<RankRun, 6> runs{};  // strides grow
  int count = 0;
  std::int64_t inner = 0;  // ranks below the pp axis; 0 = laid out over ranks
  std::int64_t pp = 1;

  /// Joins the run before where it goes on from it.
  void add(RankRun run);
  std::int64_t size() const;
  /// The first `ranks` of each group are groups of their own, and those after them.
  /// \returns no runs where the extents of the runs do not allow it
  GroupRuns neighbours(std::int64_t ranks) const;
  /// Place of a rank in the layout of the runs, and back; `stage` is the rank's pipeline stage.
  std::int64_t place(std::int64_t rank) const {
    return inner == 0 ? rank : rank / (inner * pp) * inner + rank % inner;
  }
  std::int64_t rank(std::int64_t place, std::int64_t stage) const {
    return inner == 0 ? place : (place / inner * pp + stage) * inner + place % inner;
  }
  std::int64_t stage(std::int64_t rank) const { return inner == 0 ? 0 : rank / inner % pp; }

  /// Place of the first rank of the group that has a rank at `place`.
  std::int64_t first(std::int64_t place) const {
    std::int64_t base = place;
    for (int i = 0; i < count; ++i) {
      const RankRun& run = runs[static_cast<std::size_t>(i)];
      base -= place / run.stride % run.size * run.stride;
    }
    return base;
  }
  /// Place of element `index` of the group whose first rank is at `base`; grows with `index`.
  std::int64_t element(std::int64_t base, std::int64_t index) const {
    for (int i = 0; i < count; ++i) {
      const RankRun& run = runs[static_cast<std::size_t>(i)];
      base += index % run.size * run.stride;
      index /= run.size;
    }
    return base;
  }
  friend bool operator==(const GroupRuns&, const GroupRuns&) = default;
};

/// The ranks of the groups of `kind`. \pre as group_shape
GroupRuns group_runs(const Layout& layout, GroupKind kind);

/// The shape of groups that lie so among `world` ranks: all that group_shape asks of a layout.
GroupShape shape_of(const ClusterSpec& cluster, std::int64_t world, const GroupRuns& group);

}  // namespace shardwise
