#pragma once

#include <cstdint>

namespace shardwise::sim {

// Numbers that depend on what they are for and nothing else, so that trials repeat whatever the
// order in which operations run.

/// Two numbers as one whose bits look random.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014:
/// SplitMix64's increment and finalizer.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// In [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t number) {
  return static_cast<double>(mixed(seed, number) >> 11U) * 0x1p-53;
}

/// Normal with mean 0 and deviation 1.
double normal(std::uint64_t seed, std::uint64_t number);

/// Log-normal with mean 1 and about `deviation`, for deviations well below 1.
double jitter_factor(std::uint64_t seed, std::uint64_t number, double deviation);

}  // namespace shardwise::sim
