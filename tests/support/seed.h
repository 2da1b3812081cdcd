#pragma once

#include <cstdint>
#include <string_view>

namespace shardwise::test {

/// A seed of `name` alone (FNV-1a from `base`), so that what is drawn of one engine does not change
/// when another is added.
constexpr std::uint32_t seed_of(std::uint32_t base, std::string_view name) {
  std::uint32_t hash = 2166136261U ^ base;
  for (const char each : name) {
    hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
  }
  return hash;
}

}  // namespace shardwise::test
