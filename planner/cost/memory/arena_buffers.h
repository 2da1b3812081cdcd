#pragma once

#include <cstdint>

#include "planner/cost/memory/stage_buffers.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

/// Layers that an engine with a planned arena keeps whole over the step, outside the units that
/// take turns with buffers.
constexpr bool is_root(LayerRole role) {
  return role == LayerRole::embedding || role == LayerRole::head || role == LayerRole::mtp;
}

/// Buffers of data parallelism on a stage under an engine with a planned arena, from the first
/// operation of a step that needs it to the last, whatever runs: a plan that does not depend on
/// when communication ends. A unit is what of a layer is shared out: nothing of one rank's own.
struct ArenaBuffers {
  WholeWeights roots;  // embedding, head and multi-token prediction, whole over the step
  WholeWeights unit;   // each of two buffers that the other units are gathered into
  Amount root_staged;  // gradients of one root on their way
  Amount head_staged;  // and of a head whose table is the embedding's: they are there together
  Amount unit_staged;  // each of two buffers for those of the other units
  Amount unreduced;    // instead of both: all gradients, where only the last micro-batch reduces
  Amount received;     // what an all-to-all brings of a unit, where it is summed in fp32
  Amount sums;
};
ArenaBuffers arena_buffers(const StageParts& parts, const StageContext& context);

/// Buffers of `arena` as a part of the ledger.
StageBuffers stage_buffers_of(const ArenaBuffers& arena);

/// Elements of a layer that are gathered, and of them those in 8 bits. \param multiple
/// shard_multiple
WholeWeights gathered_elements(const LayerParameters& parameters, const Layout& layout,
                               std::int64_t multiple);

/// Trained elements of a layer whose gradients are reduced over the inner axis.
std::int64_t reduced_elements(const LayerParameters& parameters, const Layout& layout,
                              std::int64_t multiple);

}  // namespace shardwise
