#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "executor/kernels/element.h"
#include "executor/kernels/host_and_gpu.h"

namespace shardwise::exec {

/// A number of 64 random bits for every (seed, counter): what is drawn does not depend on who draws
/// it, nor on what was drawn before.
/// Source: the finalizer of splitmix64, http://xorshift.di.unimi.it/splitmix64.c.
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE constexpr std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}
SHARDWISE_INLINE constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  return mixed(mixed(seed + 0x9e3779b97f4a7c15ULL) + 0x9e3779b97f4a7c15ULL * (counter + 1));
}

/// A seed for something that has a name (FNV-1a of it).
constexpr std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return mixed(seed ^ hash);
}

/// A standard normal number for every (seed, counter).
float random_normal(std::uint64_t seed, std::uint64_t counter);
/// Those of (seed, first), (seed, first + 1), … in the same bits, several times as fast.
void random_normals(std::uint64_t seed, std::uint64_t first, std::span<float> to);

}  // namespace shardwise::exec
