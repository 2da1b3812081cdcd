#pragma once

#include <cstdint>

#include "planner/spec/text/mixed_bits.h"

namespace shardwise::sim {

// Numbers that depend on what they are for and nothing else, so that trials repeat whatever the
// order in which operations run.

/// Number in [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t number) {
  return static_cast<double>(mixed(seed, number) >> 11U) * 0x1p-53;
}

/// Normal number with mean 0 and deviation 1.
double normal(std::uint64_t seed, std::uint64_t number);

/// Log-normal number with mean 1 and about `deviation`, for deviations well below 1.
double jitter_factor(std::uint64_t seed, std::uint64_t number, double deviation);

}  // namespace shardwise::sim
