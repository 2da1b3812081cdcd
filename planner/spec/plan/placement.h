#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Placement of one kind of persistent state on a data-parallel mesh.
enum class Placement : std::uint8_t {
  replicate,    // every rank has all of it
  shard_inner,  // cut over dp_shard, replicated over dp_replicate
  shard_both,   // cut over dp_shard x dp_replicate
};

/// The law of ARCHITECTURE.md: a strategy is a placement of parameters, gradients, optimizer state.
struct StatePlacement {
  Placement parameters = Placement::replicate;
  Placement gradients = Placement::replicate;
  Placement optimizer = Placement::replicate;
  friend bool operator==(const StatePlacement&, const StatePlacement&) = default;
};

/// The only place where a ZeRO stage becomes placements. \pre 0 <= zero_stage <= 3
constexpr StatePlacement placement_of(int zero_stage, bool outer_shards_optimizer) {
  constexpr auto kWhole = Placement::replicate;
  constexpr auto kInner = Placement::shard_inner;
  const auto optimizer = outer_shards_optimizer ? Placement::shard_both : kInner;
  switch (zero_stage) {
    case 0:
      return {kWhole, kWhole, kWhole};
    case 1:
      return {kWhole, kWhole, optimizer};
    case 2:
      return {kWhole, kInner, optimizer};
    default:
      return {kInner, kInner, optimizer};
  }
}

}  // namespace shardwise
