#pragma once

#include <cstdint>

#include "planner/lowering/operands/state_units.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

/// Where a rank stands in the axes that spread a stage's states.
struct DataParallelPlace {
  std::int64_t shard_ranks = 1;  // ranks that share a state placed shard_inner …
  int shard_rank = 0;            // … and which of them this is
  std::int64_t replicas = 1;     // dp_replicate
  int replica = 0;
  std::int64_t stage_ranks = 1;  // all of its pipeline stage that have the same parts of tensors
  int stage_rank = 0;
  std::int64_t tp_ranks = 1;  // those that tensor parallelism cuts tensors for
  int tp_rank = 0;
};

/// A range of a unit's elements.
struct ShardRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Elements that a rank has of a tensor, its first ones, without the zeros behind them.
std::int64_t filled_of(const UnitTensor& tensor, const DataParallelPlace& place);

/// Piece r of `all` elements cut into pieces of `piece`: the last may be short, or empty.
ShardRange piece_held(std::int64_t all, std::int64_t piece, std::int64_t rank);

/// Elements of a unit that a rank has room for, padding included.
std::int64_t room_of(const StateUnit& unit, Placement placement);

/// Those that this rank has of it.
ShardRange held_of(const StateUnit& unit, Placement placement, const DataParallelPlace& place);

/// Part of those that it updates, over all ranks with the same parts of tensors each once: ranks
/// that update the same share them out.
ShardRange stands_for(const StateUnit& unit, Placement optimizer, const DataParallelPlace& place);

}  // namespace shardwise
