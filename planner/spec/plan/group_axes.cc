#include "planner/spec/plan/group_axes.h"

namespace shardwise {

std::string_view axes_of(GroupKind group) {
  switch (group) {
    case GroupKind::tp:
      return "tp";
    case GroupKind::cp:
      return "cp";
    case GroupKind::ep:
      return "ep";
    case GroupKind::etp:
      return "etp";
    case GroupKind::pp:
      return "pp";
    case GroupKind::dp_shard:
      return "dp_shard";
    case GroupKind::dp_replicate:
      return "dp_replicate";
    case GroupKind::dp_shard_cp:
      return "dp_shard x cp";
    case GroupKind::dp_cp:
      return "dp x cp";
    case GroupKind::stage:
      return "stage";
    case GroupKind::edp:
      return "edp";
    case GroupKind::edp_shard:
      return "edp_shard";
    case GroupKind::reshard:
      return "reshard";
    case GroupKind::world:
      return "world";
  }
  return "";
}

}  // namespace shardwise
