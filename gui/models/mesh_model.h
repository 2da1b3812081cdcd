#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/mesh.h"
#include "planner/spec/plan.h"

namespace shardwise::view {

/// GPUs that a mesh draws one by one; of more, whole nodes are drawn.
inline constexpr std::int64_t kMostDrawnRanks = 4096;

/// Where the ranks of a layout are.
struct MeshView {
  std::int64_t ranks = 0;
  std::int64_t per_node = 8;
  std::int32_t stages = 1;
  std::vector<std::int32_t> stage;     // by rank; empty where nodes are drawn
  std::vector<std::int32_t> tp_group;  // by rank: the lowest rank of its tensor-parallel group
  std::int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
};
MeshView mesh_view(const Plan& plan);

/// The ranks that one communicates with, by kind of group.
struct RankGroups {
  std::vector<std::int64_t> tp;
  std::vector<std::int64_t> pp;
  std::vector<std::int64_t> dp;  // that hold the same weights
};
RankGroups groups_of(const Layout& layout, std::int64_t rank);

/// "rank 12, node 1: stage 0 of 8, tensor parallel with 12, 13".
std::string rank_text(const MeshView& mesh, const Layout& layout, std::int64_t rank);

}  // namespace shardwise::view
