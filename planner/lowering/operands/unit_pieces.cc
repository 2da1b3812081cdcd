#include "planner/lowering/operands/unit_pieces.h"

#include <algorithm>

#include "planner/spec/text/units.h"

namespace shardwise {

std::int64_t filled_of(const UnitTensor& tensor, const DataParallelPlace& place) {
  return tensor.cut.cut() ? filled_part(tensor.cut, tensor.cut.part_of(place.tp_rank))
                          : tensor.filled;
}

ShardRange piece_held(std::int64_t all, std::int64_t piece, std::int64_t rank) {
  const std::int64_t begin = std::min(all, piece * rank);
  return {begin, std::min(all, begin + piece) - begin};
}

std::int64_t room_of(const StateUnit& unit, Placement placement) {
  switch (placement) {
    case Placement::replicate:
      return unit.elements;
    case Placement::shard_inner:
      return unit.shard;
    case Placement::shard_both:
      return unit.outer_shard;
  }
  return 0;
}

ShardRange held_of(const StateUnit& unit, Placement placement, const DataParallelPlace& place) {
  if (placement == Placement::replicate) return {0, unit.elements};
  const ShardRange inner = piece_held(unit.elements, unit.shard, place.shard_rank);
  if (placement == Placement::shard_inner) return inner;
  const ShardRange both = piece_held(inner.count, unit.outer_shard, place.replica);
  return {inner.begin + both.begin, both.count};
}

ShardRange stands_for(const StateUnit& unit, Placement optimizer, const DataParallelPlace& place) {
  const ShardRange own = held_of(unit, optimizer, place);
  if (optimizer == Placement::shard_both) return own;
  const bool whole = optimizer == Placement::replicate;
  const std::int64_t ranks = whole ? place.stage_ranks : place.replicas;
  const ShardRange piece =
      piece_held(own.count, ceil_div(own.count, ranks), whole ? place.stage_rank : place.replica);
  return {own.begin + piece.begin, piece.count};
}

}  // namespace shardwise
