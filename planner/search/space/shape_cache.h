#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/group_runs.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// group_shape() that finds each shape once: groups of many layouts and orders are the same ranks,
/// and where groups straddle the nodes a shape takes a walk over all of them. One thread's.
class ShapeCache {
 public:
  /// \pre `cluster` outlives this
  explicit ShapeCache(const ClusterSpec& cluster) : cluster_(cluster) {}

  GroupShape shape(const Layout& layout, GroupKind kind);

 private:
  struct Key {
    std::int64_t world = 1;
    GroupRuns runs;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  const ClusterSpec& cluster_;
  std::unordered_map<Key, GroupShape, KeyHash> known_;
};

}  // namespace shardwise
