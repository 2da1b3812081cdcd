#include "gui/models/mesh_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardwise::view {

MeshView mesh_view(const Plan& plan) {
  MeshView mesh;
  mesh.ranks = plan.layout.world();
  mesh.per_node = std::max<std::int64_t>(1, plan.cluster.gpus_per_node);
  mesh.stages = plan.layout.pp;
  if (mesh.ranks > kMostDrawnRanks) return mesh;
  const auto count = static_cast<std::size_t>(mesh.ranks);
  mesh.stage.assign(count, -1);
  mesh.tp_group.assign(count, -1);
  for (std::int64_t rank = 0; rank < mesh.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (mesh.stage[at] < 0) {
      std::int32_t stage = 0;
      for (const std::int64_t each : group_ranks(plan.layout, GroupKind::pp, rank)) {
        mesh.stage[static_cast<std::size_t>(each)] = stage++;
      }
    }
    if (mesh.tp_group[at] < 0) {
      for (const std::int64_t each : group_ranks(plan.layout, GroupKind::tp, rank)) {
        mesh.tp_group[static_cast<std::size_t>(each)] = static_cast<std::int32_t>(rank);
      }
    }
  }
  return mesh;
}

RankGroups groups_of(const Layout& layout, std::int64_t rank) {
  return {group_ranks(layout, GroupKind::tp, rank), group_ranks(layout, GroupKind::pp, rank),
          group_ranks(layout, GroupKind::dp_cp, rank)};
}

std::string rank_text(const MeshView& mesh, const Layout& layout, std::int64_t rank) {
  const RankGroups groups = groups_of(layout, rank);
  const auto listed = [](const std::vector<std::int64_t>& ranks) {
    constexpr std::size_t kMost = 8;
    const std::size_t shown = std::min(kMost, ranks.size());
    return fmt::format(
        "{}{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        ranks.size() > kMost ? fmt::format(" … of {}", ranks.size()) : "");
  };
  std::string text = fmt::format("rank {}, node {}", rank, rank / mesh.per_node);
  if (!mesh.stage.empty()) {
    text +=
        fmt::format("\nstage {} of {}", mesh.stage[static_cast<std::size_t>(rank)], mesh.stages);
  }
  text += fmt::format("\ntensor parallel {}", listed(groups.tp));
  text += fmt::format("\npipeline {}", listed(groups.pp));
  text += fmt::format("\ndata and context parallel {}", listed(groups.dp));
  return text;
}

}  // namespace shardwise::view
