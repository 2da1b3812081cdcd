#pragma once

#include <cstdint>

#include "planner/lowering/data_parallel/arena_slots.h"
#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/data_parallel/unit_work.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Reduce-scatters with fp32 accumulation: gradients of 16 bits travel by all-to-all into a buffer
/// of their own, and what arrived is summed in fp32 into the shard. Megatron sums on the stream
/// that waits, compute: when the next bucket is dispatched, or at the end of the step. Our executor
/// sums beside the communication. Source: docs/gathers_and_reductions.md, "Reductions".
class Fp32Sums {
 public:
  Fp32Sums(const LoweringContext& context, StageBuilder& builder, ArenaSlots& slots);

  /// Emits a reduction of `padded` elements as the operation `op`, and the sum if costs.sum says
  /// so: at once, or when the next one is dispatched. The sum uses what `lists` uses.
  /// \returns the operation after which the shard is there, or the all-to-all where the sum is due
  OpId reduce(ProgramOp op, const UnitCosts::Group& costs, std::int64_t padded,
              OperationLists lists);
  /// Emits the sum that is due. \returns it, or kNone
  OpId drain();

 private:
  const LoweringContext& context_;
  StageBuilder& builder_;
  ArenaSlots& slots_;
  bool at_once_ = false;
  Stream stream_ = Stream::compute;
  ProgramOp due_;
  OpId arrived_ = kNone;  // the all-to-all whose sum is due
  BufferId received_ = kNone;
  std::int64_t sums_bytes_ = 0;
  std::vector<BufferId> uses_;
};

}  // namespace shardwise
