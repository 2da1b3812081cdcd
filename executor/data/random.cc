#include "executor/data/random.h"

#include <cmath>
#include <numbers>

namespace shardwise::exec {

// Box and Muller's transform of two uniform numbers, the first in (0, 1].
float random_normal(std::uint64_t seed, std::uint64_t counter) {
  const std::uint64_t bits = random_bits(seed, counter);
  const double u = (static_cast<double>(bits >> 32) + 1) * 0x1p-32;
  const double v = static_cast<double>(bits & 0xffffffffULL) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

}  // namespace shardwise::exec
