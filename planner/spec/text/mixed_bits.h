#pragma once

#include <cstdint>

namespace shardwise {

/// Two numbers as one whose bits look random.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014:
/// SplitMix64's increment and finalizer.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace shardwise
