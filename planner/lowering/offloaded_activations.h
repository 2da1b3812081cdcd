#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Data layers keep for backward, where it waits in host memory. The GPU has two places for it,
/// with which passes of layers take turns in the order of issue: a forward pass has one until its
/// copy has left, a backward pass from the begin of its copy back to its own end. A place is a
/// buffer that comes and goes; under a planned arena there is room for both from the first pass to
/// the last. docs/step_program.md, "Buffers".
class OffloadedActivations {
 public:
  /// \param room  bytes of both places: offload_room() \pre all outlive this
  OffloadedActivations(const LoweringContext& context, std::int64_t room, StageBuilder& builder);

  bool on() const { return on_; }
  /// The pass of a layer that keeps so many bytes: adds what it waits for, allocates and frees.
  void before(const LayerTurn& turn, std::int64_t bytes, OperationLists& lists);
  /// `op` was its last operation.
  void after(const LayerTurn& turn, std::int64_t bytes, OpId op);

 private:
  struct Place {
    BufferId held = kNone;  // by the turn
    OpId left = kNone;      // the last operation of the turn before
  };
  Place& next() { return places_[turns_ % places_.size()]; }
  /// Without its lists.
  ProgramOp copy(OpRole role, const LayerTurn& turn, std::int64_t bytes);
  /// The turn before in this place, unless the order of the stream is enough.
  OpId left(const Place& place, Stream stream) const;
  std::int32_t cost(std::int64_t bytes);

  StageBuilder& builder_;
  bool on_;
  bool planned_;
  std::int64_t room_;
  BufferId both_ = kNone;  // planned
  std::array<Place, 2> places_;
  std::size_t turns_ = 0;
  std::vector<std::pair<std::int64_t, std::int32_t>> costs_;  // bytes and the number of their cost
};

}  // namespace shardwise
