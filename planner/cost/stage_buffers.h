#pragma once

#include <cstdint>

#include "planner/cost/memory.h"

namespace shardwise {

/// What moves weights and gradients of a stage between shards and whole, whatever layer runs.
struct StageBuffers {
  bool whole = true;       // parameters are not sharded
  std::int64_t root = 0;   // elements kept gathered over the step
  std::int64_t queue = 0;  // elements of a gather queue or of double buffers
  std::int64_t reduce =
      0;  // bytes of reductions on their way, where they do not depend on the layer
};
StageBuffers stage_buffers(const StageParts& parts, const StageContext& context);

/// Whole weights that exist while `moment` runs forward or backward, beyond the persistent states:
/// gathered units, those prefetched, and the shards cast for gathering. Zero below ZeRO-3.
/// Source: docs/memory.md, gathered weights.
std::int64_t gathered_bytes(const StageBuffers& buffers, const StageParts& parts,
                            const StageContext& context, const StageMoment& moment, bool backward);

/// Gradients on their way from the layers that made them to their shards, besides those of the
/// layer that runs. Source: docs/memory.md, gradient staging.
std::int64_t staging_bytes(const StageBuffers& buffers, const StageContext& context,
                           const StageMoment& moment);

/// Units that a queue holds which takes new ones until at least `capacity` elements are in it, and
/// the unit being worked on; no more elements than `all`.
std::int64_t queued_elements(std::int64_t capacity, std::int64_t unit, std::int64_t all);

}  // namespace shardwise
