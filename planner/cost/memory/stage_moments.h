#pragma once

#include <cstdint>

#include "planner/cost/memory/amount.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/schedule/held_passes.h"

namespace shardwise {

/// Activations kept for the other micro-batches while a pass of `chunk`, or of a chunk like it,
/// runs, at their maximum. None where activations are offloaded.
struct OtherPasses {
  HeldPasses held;
  std::int64_t bytes = 0;
};
OtherPasses other_passes(const StageParts& parts, const StageContext& context, std::int32_t chunk,
                         bool backward);
/// Other passes while one runs whose gradients join those of others.
OtherPasses other_passes_when_joining(const StageParts& parts, const StageContext& context,
                                      std::int32_t chunk);

/// Keeps the bytes of other_passes() in `parts`, for callers that look at many meshes and states of
/// one pipeline. \param choices  of the stage, by parts.chunk_like
void remember_other_passes(StageParts& parts, const HeldChoices& choices);

/// Bytes messages between stages hold while passes run: the gradient that a stage sent last, or,
/// under a planned arena, the buffers of message_slots().
Amount message_buffers(const StageParts& parts, const StageContext& context);

/// Whether a moment is the end of backward, when all of a stage's gradients are reduced and no
/// micro-batch is in flight. \param joined  joined_pass()
bool ends_backward(const StageBuffers& buffers, bool joined);

/// Bytes two layers keep at most whose passes follow one another: of all that is offloaded no more
/// is on the GPU at once (OffloadedActivations).
std::int64_t offload_room(const StageParts& parts, const StageContext& context);

/// Activations that the layers besides the one that runs keep, of the same micro-batch.
struct OtherLayers {
  Amount alike;        // by layers of the same kind just before
  Amount others;       // by those before them
  Amount on_its_way;   // or, when activations are offloaded, of the layer whose copy is on its way;
                       // under a planned arena the rest of offload_room()
  Amount later;        // by those after it, which wait for their weight gradients
  Amount left_behind;  // by those after it, whose backward pass is over
  std::int64_t bytes() const {
    return alike.bytes() + others.bytes() + on_its_way.bytes() + later.bytes() +
           left_behind.bytes();
  }
};
/// LayerMemory::left_behind of a layer, where it is sharded. \param whole  it does not run again
std::int64_t left_behind(const LayerMemory& layer, bool whole, const Layout& layout);
OtherLayers other_layers(const StageMoment& moment, bool backward, const StageParts& parts,
                         const StageContext& context);

/// Gradients that backward makes and the step frees, of the layers that are done at `moment`; where
/// a bucket of them is reduced as they are made, those that a rank keeps, from the first reduction
/// on.
Amount gradients_made(const StageBuffers& buffers, const StageMoment& moment, bool backward,
                      bool joined, const StageParts& parts, const StageContext& context,
                      const StageStates& states);

/// Bytes a stage holds at one moment of a micro-batch beyond its states and resident buffers.
struct PassBytes {
  std::int64_t activations = 0;
  std::int64_t in_flight = 0;
  std::int64_t working = 0;
  std::int64_t loss = 0;
  std::int64_t recomputed = 0;
  std::int64_t gathered = 0;
  std::int64_t staging = 0;
  std::int64_t gradients = 0;  // made in backward so far
  std::int64_t total() const {
    return activations + in_flight + working + loss + recomputed + gathered + staging + gradients;
  }
};

/// Below what passes hold at their fullest moment besides gradients that the step frees, whatever
/// data parallelism does with the states: what a layer finds there that is about to run forward.
std::int64_t least_pass_bytes(const StageParts& parts, const StageContext& context);

/// The moment at which a stage is fullest, and what it holds then.
struct FullestMoment {
  PassBytes bytes;
  StageMoment moment;  // without a layer: the stage has none
  bool backward = false;
  bool joined = false;      // the layer's gradients are there, and being joined: joined_pass()
  bool first_pass = false;  // StageBuffers::first_pass
  bool first_microbatch = false;  // StageBuffers::first_microbatch
};
/// Bytes of the other passes in flight at that moment.
HeldPasses held_at(const FullestMoment& at, const StageParts& parts, const StageContext& context);
/// \param first_pass  of the job's first pass. \pre gathers_in_use_first(), if so
FullestMoment fullest_moment(const StageParts& parts, const StageContext& context,
                             const StageStates& states, bool first_pass = false);

}  // namespace shardwise
