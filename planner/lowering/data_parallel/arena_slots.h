#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/memory/arena_buffers.h"
#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// The buffers of data parallelism under an engine with a planned arena (ArenaBuffers). Weights
/// are there from the first gather to the end of the passes, gradients from the first pass to the
/// last reduction. Units take turns with two buffers; who takes one waits for what used it last.
class ArenaSlots {
 public:
  ArenaSlots(const LoweringContext& context, std::int32_t stage, StageBuilder& builder);

  /// Whether the engine plans an arena: without, there are no buffers.
  bool on() const { return on_; }
  bool is_root(const StageLayer& layer) const;

  /// Where a layer's weights are gathered: its own if it is a root, else the buffer of turn
  /// `number`. kNone where nothing is.
  BufferId gathered(const StageLayer& layer, std::size_t slot, std::int64_t number) const;
  /// Where its gradients wait to be reduced: as above; its own where they wait for the last
  /// micro-batch.
  BufferId staged(const StageLayer& layer, std::size_t slot, std::int64_t number) const;
  /// The embedding's, which a head that shares its table begins to fill; kNone for all others.
  BufferId staged_table(const StageLayer& layer) const;
  /// Buffer of what an all-to-all brings, and its sums.
  BufferId received() const { return received_; }
  BufferId sums() const { return sums_; }

  /// The buffer if nothing has touched it: its first user allocates it.
  BufferId unmade(BufferId buffer) const;
  /// `op` touches the buffer, and is ordered after all that did before.
  void touch(BufferId buffer, OpId op);
  /// The operation that touched it last.
  OpId last(BufferId buffer) const { return buffer == kNone ? kNone : last_[buffer - first_]; }
  /// Nothing touches them any more: the last pass and the last reduction free them.
  void finish();

 private:
  BufferId make(MemoryCategory category, std::int64_t bytes, std::int32_t layer = -1);
  bool holds_weights(BufferId buffer) const;

  const LoweringContext& context_;
  StageBuilder& builder_;
  bool on_ = false;
  BufferId first_ = kNone;
  std::vector<OpId> last_;                // by number of the buffer, from the first on
  std::vector<BufferId> gathered_roots_;  // by slot of the layer
  std::vector<BufferId> unreduced_;       // by slot
  std::array<BufferId, 2> units_ = {kNone, kNone};
  std::array<BufferId, 2> staged_units_ = {kNone, kNone};
  BufferId staged_root_ = kNone;
  BufferId staged_head_ = kNone;
  BufferId received_ = kNone;
  BufferId sums_ = kNone;
};

}  // namespace shardwise
