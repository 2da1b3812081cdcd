#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

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

/// Log-normal with mean 1 and about `deviation`, for deviations well below 1.
inline double jitter_factor(std::uint64_t seed, std::uint64_t number, double deviation) {
  // Box and Muller, Annals of Mathematical Statistics 29 (1958).
  const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, 2 * number)));
  const double normal = radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * number + 1));
  return std::exp(deviation * normal - deviation * deviation / 2);
}

}  // namespace shardwise::sim
