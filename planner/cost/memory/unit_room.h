#pragma once

#include <cstdint>

#include "planner/cost/memory/state_bytes.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"

namespace shardwise {

/// Ranks that share the most finely cut state of a unit.
ShardRanks finest_ranks(const Layout& layout);

/// Elements of a unit with what pads its end, so that ranks x `multiple` divide them. Every rank
/// that has the unit whole has room for as many. \param ranks  finest_ranks
constexpr std::int64_t unit_room(std::int64_t elements, std::int64_t ranks, std::int64_t multiple) {
  if (multiple == 1 || ranks <= 1) return elements;
  const std::int64_t step = ranks * multiple;
  return (elements + step - 1) / step * step;
}

/// Room of a layer's trained parameters: its dense unit and its routed one.
struct TrainedRoom {
  std::int64_t dense = 0;
  std::int64_t routed = 0;
};
TrainedRoom trained_room(const LayerParameters& parameters, const Layout& layout,
                         std::int64_t multiple);

}  // namespace shardwise
