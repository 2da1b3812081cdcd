#include "gui/models/mesh/mesh_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

/// "0, 1, 2, 3" or "0, 1 … 63 (64)".
std::string listed(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t kMost = 8;
  if (ranks.size() <= kMost) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, {} … {} ({} ranks)", ranks[0], ranks[1], ranks.back(),
                     format_count(static_cast<std::int64_t>(ranks.size())));
}

}  // namespace

MeshView mesh_view(const Plan& plan) {
  MeshView mesh;
  mesh.ranks = plan.layout.world();
  mesh.per_node = std::max<std::int64_t>(1, plan.cluster.gpus_per_node);
  mesh.stages = plan.layout.pp;
  mesh.whole_nodes = mesh.ranks > kMostDrawnRanks;
  const std::int64_t step = mesh.whole_nodes ? mesh.per_node : 1;
  for (std::int64_t rank = 0; rank < mesh.ranks; rank += step) {
    const std::int64_t last = std::min(rank + step, mesh.ranks) - 1;
    const std::int32_t stage = stage_of(plan.layout, rank);
    mesh.boxes.push_back({rank, stage, last == rank ? stage : stage_of(plan.layout, last)});
  }
  return mesh;
}

std::int32_t stage_of(const Layout& layout, std::int64_t rank) {
  if (layout.pp == 1) return 0;
  const std::vector<std::int64_t> pipeline = group_ranks(layout, GroupKind::pp, rank);
  return static_cast<std::int32_t>(std::ranges::find(pipeline, rank) - pipeline.begin());
}

std::vector<RankGroup> groups_of(const Layout& layout, std::int64_t rank) {
  std::vector<RankGroup> groups;
  for (std::size_t i = 0; i < kShownGroups.size(); ++i) {
    if (kShownGroups[i].kind == GroupKind::ep && layout.ep == 1) continue;
    std::vector<std::int64_t> ranks = group_ranks(layout, kShownGroups[i].kind, rank);
    if (ranks.size() > 1) groups.push_back({i, std::move(ranks)});
  }
  return groups;
}

std::string links_text(const ClusterSpec& cluster, const Layout& layout) {
  std::string text;
  for (const RankGroup& group : groups_of(layout, 0)) {
    const GroupShape shape = group_shape(cluster, layout, kShownGroups[group.shown].kind);
    const auto outermost = static_cast<std::size_t>(std::max(shape.tiers, 1) - 1);
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "\n", kShownGroups[group.shown].label,
                        group.ranks.size(), cluster.tiers[outermost].name);
  }
  return text;
}

std::string rank_text(const MeshView& mesh, const Layout& layout, std::int64_t rank) {
  std::string text =
      fmt::format("rank {}, node {}, stage {} of {}", format_count(rank),
                  format_count(rank / mesh.per_node), stage_of(layout, rank), mesh.stages);
  for (const RankGroup& group : groups_of(layout, rank)) {
    text += fmt::format("\n{}: {}", kShownGroups[group.shown].label, listed(group.ranks));
  }
  return text;
}

}  // namespace shardwise::view
