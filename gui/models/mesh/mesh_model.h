#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// GPUs that a mesh draws one by one; of more, whole nodes are drawn.
inline constexpr std::int64_t kMostDrawnRanks = 4096;

/// A GPU, or a whole node.
struct MeshBox {
  std::int64_t rank = 0;        // of a node, its first
  std::int32_t stage = 0;       // of the pipeline
  std::int32_t last_stage = 0;  // of a node, that of its last rank
};

/// Where the ranks of a layout are.
struct MeshView {
  std::int64_t ranks = 0;
  std::int64_t per_node = 8;
  std::int32_t stages = 1;
  bool whole_nodes = false;
  std::vector<MeshBox> boxes;  // every rank is in one

  std::int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
  std::size_t box_of(std::int64_t rank) const {
    return static_cast<std::size_t>(whole_nodes ? rank / per_node : rank);
  }
};
MeshView mesh_view(const Plan& plan);

/// The pipeline stage of a rank.
std::int32_t stage_of(const Layout& layout, std::int64_t rank);

/// The kinds of groups that are shown, each with the words for it.
struct ShownGroup {
  GroupKind kind = GroupKind::tp;
  Axis axis = Axis::tp;
  std::string_view label;
};
inline constexpr std::array<ShownGroup, 6> kShownGroups = {{
    {GroupKind::tp, Axis::tp, "tensor parallel"},
    {GroupKind::cp, Axis::cp, "context parallel"},
    {GroupKind::ep, Axis::ep, "expert parallel"},
    {GroupKind::dp_shard, Axis::dp_shard, "data parallel"},
    {GroupKind::dp_replicate, Axis::dp_replicate, "replicas"},
    {GroupKind::pp, Axis::pp, "pipeline"},
}};

/// The ranks that one communicates with in a group of one kind, itself among them.
struct RankGroup {
  std::size_t shown = 0;  // of kShownGroups
  std::vector<std::int64_t> ranks;
};
/// Those of more than one rank, as group_ranks() has them.
std::vector<RankGroup> groups_of(const Layout& layout, std::int64_t rank);

/// "tensor parallel: nvlink", a line for each group: the outermost links that it crosses.
std::string links_text(const ClusterSpec& cluster, const Layout& layout);

/// "rank 12, node 1, stage 0 of 8", and a line for each group.
std::string rank_text(const MeshView& mesh, const Layout& layout, std::int64_t rank);

}  // namespace shardwise::view
