#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// How the ranks of one communication group lie on the link tiers, innermost first.
///
/// span[i] is the number of ranks of the group inside one domain of tier i; it grows with i and the
/// last used entry is the size of the group. A group of 16 that has 8 ranks in each of 2 nodes is
/// {8, 16}; one that has a single rank in each of 4 nodes is {1, 4}.
///
/// Where domains and groups do not divide one another, groups of one kind lie differently, and one
/// group has more ranks in some domains than in others: tp = 6 in nodes of 8 has the groups
/// 6, 2 + 4, 4 + 2 and 6. The shape then describes the worst: span is the most ranks in any domain,
/// least the fewest, domains the most domains that one group touches.
struct GroupShape {
  std::int32_t ranks = 1;
  std::int32_t tiers = 0;                         // entries below that are set; 0 for one rank
  std::array<std::int32_t, kMaxTiers> span{};     // most ranks in one domain of tier i
  std::array<std::int32_t, kMaxTiers> least{};    // fewest ranks in a domain that is touched
  std::array<std::int32_t, kMaxTiers> domains{};  // domains of tier i that are touched
  /// Groups of the same kind with a rank among the GPUs that leave an inner domain by the same
  /// links of tier i, all communicating at once. Those GPUs are a domain of tier i - 1 (one GPU for
  /// the innermost tier), or gpus_per_link neighbours where that is more.
  std::array<std::int32_t, kMaxTiers> concurrent{};
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// The communication groups a layout has. `dp` is dp_shard x dp_replicate; `dp_cp` also cp, since
/// gradients are reduced over both; `stage` is all ranks of a pipeline stage; `edp` the
/// data-parallel ranks of routed experts and `edp_shard` those of one dp_replicate instance;
/// `reshard` are the neighbours of dp_shard_cp, layout.reshard_after_forward of them, that share
/// weights between forward and backward.
enum class GroupKind : std::uint8_t {
  tp,
  cp,
  ep,
  etp,
  pp,
  dp_shard,
  dp_replicate,
  dp_shard_cp,
  dp_cp,
  stage,
  edp,
  edp_shard,
  reshard,
  world
};

/// The shape of the groups of `kind`, the worst where they differ, with ranks laid out in
/// layout.order on the tiers. Experts fold over the tp x cp x dp ranks of a pipeline stage: in the
/// order of `layout.order`, tp reads etp, dp_shard reads edp, and cp and dp_replicate vanish.
/// \pre 1 <= layout.world() <= kMostGpus, ep x etp divides tp x cp x dp
GroupShape group_shape(const ClusterSpec& cluster, const Layout& layout, GroupKind kind);

/// Ranks of the group of `kind` that `rank` belongs to, in group order. \pre as group_shape
std::vector<std::int64_t> group_ranks(const Layout& layout, GroupKind kind, std::int64_t rank);

}  // namespace shardwise
