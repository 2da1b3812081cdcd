#include "planner/cost/collectives/collective.h"

#include <algorithm>

#include "planner/cost/collectives/collective_candidates.h"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"all_gather", "reduce_scatter", "all_reduce",
                                                    "all_to_all", "broadcast",      "send_recv"};

}  // namespace

std::string_view name_of(CollectiveKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<CollectiveKind> collective_from_name(std::string_view name) {
  if (name == "alltoall") return CollectiveKind::all_to_all;
  if (name == "sendrecv") return CollectiveKind::send_recv;
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) return std::nullopt;
  return static_cast<CollectiveKind>(found - kKinds.begin());
}

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return others;
    case CollectiveKind::all_reduce:
      return 2 * others;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      break;
  }
  return 1;
}

Seconds collective_bound(const ClusterSpec& cluster, CollectiveKind kind, Bytes bytes,
                         const GroupShape& group) {
  if (group.ranks <= 1) return Seconds(0);
  return Seconds(bound_seconds(links_of(cluster, group), kind, static_cast<double>(bytes.value())));
}

Seconds collective_time(const ClusterSpec& cluster, CollectiveKind kind, Bytes bytes,
                        const GroupShape& group) {
  if (group.ranks <= 1 || bytes.value() <= 0) return Seconds(0);
  const GroupLinks links = links_of(cluster, group);
  const auto size = static_cast<double>(bytes.value());
  return Seconds(
      std::max(bound_seconds(links, kind, size), candidates(links, kind, size).best().seconds()));
}

}  // namespace shardwise
