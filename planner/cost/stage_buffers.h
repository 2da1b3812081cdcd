#pragma once

#include <cstdint>

#include "planner/cost/amount.h"
#include "planner/cost/memory.h"

namespace shardwise {

/// What moves weights and gradients of a stage between shards and whole, whatever layer runs.
struct StageBuffers {
  bool whole = true;       // parameters are not sharded
  bool queues = false;     // gathers go to a queue or to double buffers, whatever layer runs
  std::int64_t root = 0;   // elements kept gathered over the step
  std::int64_t queue = 0;  // elements of a gather queue or of double buffers
  Amount reduce_buffer;    // exists while backward runs, whatever layer
  Amount reduce_queue;     // units whose reductions are on their way
};
StageBuffers stage_buffers(const StageParts& parts, const StageContext& context);

/// Elements of whole weights that exist while a layer runs, beyond the persistent states.
/// Source: docs/memory.md, gathered weights.
struct Gathered {
  std::int64_t unit = 0;    // of the layer that runs
  std::int64_t output = 0;  // the gather output they were copied from, or all that stays gathered
  std::int64_t ahead = 0;   // of the layer that runs next
  std::int64_t root = 0;    // embedding and head, kept over the step
  std::int64_t cast = 0;    // this rank's shard, cast to be sent
  std::int64_t queue = 0;   // units of a queue or of double buffers
  std::int64_t elements() const { return unit + output + ahead + root + cast + queue; }
};
/// Zero below ZeRO-3, but for the casts of mixed precision.
Gathered gathered_elements(const StageBuffers& buffers, const StageParts& parts,
                           const StageContext& context, const StageMoment& moment, bool backward);

/// Gradients on their way from the layers that made them to their shards, besides those of the
/// layer that runs. Source: docs/memory.md, gradient staging.
struct Staging {
  Amount buffer;
  Amount queue;
  Amount unit;  // input of the reduction of the unit before
  std::int64_t bytes() const { return buffer.bytes() + queue.bytes() + unit.bytes(); }
};
/// Of a backward pass; a forward pass has none.
Staging staging_at(const StageBuffers& buffers, const StageContext& context,
                   const StageMoment& moment);

/// Units that a queue holds which takes new ones until at least `capacity` elements are in it, and
/// the unit being worked on; no more elements than `all`.
std::int64_t queued_elements(std::int64_t capacity, std::int64_t unit, std::int64_t all);

}  // namespace shardwise
