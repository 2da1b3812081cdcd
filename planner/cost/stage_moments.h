#pragma once

#include <cstdint>

#include "planner/cost/amount.h"
#include "planner/cost/memory.h"
#include "planner/cost/state_bytes.h"

namespace shardwise {

/// Buffers of a planned arena for messages of one direction that are received, or sent: one on its
/// way while the other is computed with.
inline constexpr std::int64_t kBuffersADirection = 2;

/// Activations of the micro-batches that are not running.
struct OtherMicroBatches {
  Amount held;   // chunks of a micro-batch in flight
  Amount heads;  // and of the head, where all forwards run before the first backward, or weight
                 // gradients are put off
  std::int64_t bytes() const { return held.bytes() + heads.bytes(); }
};
OtherMicroBatches other_micro_batches(const StageParts& parts, const StageContext& context);

/// What messages between stages hold while passes run: the gradient that a stage sent last, or,
/// under a planned arena, two buffers a direction for what it receives and for what it sends.
Amount message_buffers(const StageParts& parts, const StageContext& context);

/// The pass of the layer that runs at `moment`.
const PassMemory& pass_of(const StageMoment& moment, bool backward);

/// Activations that the layers before the one that runs keep, of the same micro-batch.
struct SavedBefore {
  Amount alike;       // by layers of the same kind just before
  Amount others;      // by those before them
  Amount on_its_way;  // or, when activations are offloaded, of the layer whose copy is on its way
  std::int64_t bytes() const { return alike.bytes() + others.bytes() + on_its_way.bytes(); }
};
SavedBefore saved_before(const StageMoment& moment, const StageParts& parts, const Layout& layout);

/// Gradients that backward makes and the step frees, of the layers that are done at `moment`.
Amount gradients_made(const StageMoment& moment, bool backward, const StageParts& parts,
                      const StageContext& context, const StageStates& states);

/// What a stage holds at one moment of a micro-batch beyond its states and resident buffers.
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

/// The stage at `moment`, forward or backward.
PassBytes bytes_at(const StageMoment& moment, bool backward, const StageParts& parts,
                   const StageContext& context, const StageStates& states);

/// The moment at which it is fullest, and which that is.
struct FullestMoment {
  PassBytes bytes;
  std::int32_t moment = 0;
  bool backward = false;
};
FullestMoment fullest_moment(const StageParts& parts, const StageContext& context,
                             const StageStates& states);

}  // namespace shardwise
