#include "planner/lowering/operands/table_shards.h"

#include <algorithm>

namespace shardwise {

bool cuts_table(const Layout& layout) {
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  if (placement.optimizer == Placement::replicate) return false;
  return layout.dp_shard > 1 ||
         (placement.optimizer == Placement::shard_both && layout.dp_replicate > 1);
}

ShardRange table_part(const StateUnits& units, Placement optimizer,
                      const DataParallelPlace& place) {
  const TensorPlace at = units.table();
  const UnitTensor& table = units.tensor(at);
  const ShardRange held = held_of(units.units[at.unit], optimizer, place);
  const std::int64_t begin = std::max(held.begin, table.begin);
  const std::int64_t end = std::min(held.begin + held.count, table.begin + table.elements);
  if (begin >= end) return {held.begin - table.begin, 0};
  return {begin - table.begin, end - begin};
}

}  // namespace shardwise
