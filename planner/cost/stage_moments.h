#pragma once

#include <cstdint>

#include "planner/cost/memory.h"
#include "planner/cost/state_bytes.h"

namespace shardwise {

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
