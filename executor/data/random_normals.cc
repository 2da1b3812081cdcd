#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "executor/data/random.h"

namespace shardwise::exec {
namespace {

// The formula of random_normal() as vector code. Its logarithm and cosine differ from the C
// library's in the last bits of a double, of which a float keeps few: where both could round to
// different floats the C library's are taken, so that all numbers have the bits of random_normal().

constexpr std::size_t kNormals = 256;  // at a time
/// Of the 29 bits of a double's fraction that a float lacks: nearer to half a step than so many
/// units, a number is in doubt. Both ways of computing it are within 16 of the true value.
constexpr std::uint64_t kDoubtful = 512;
/// Cosines nearer to zero than this are in doubt as well, and so is the logarithm of 1.
constexpr double kSmallCosine = 1e-8;

// Whole numbers below 2^52 are the last bits of this double's fraction.
constexpr double kWhole = 0x1p52;
SHARDWISE_INLINE double to_double(std::uint64_t small) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(kWhole) | small) - kWhole;
}

/// Of u in [2^-32, 1]: the exponent that leaves m in [sqrt(1/2), sqrt(2)), and log(m) by the series
/// of the inverse hyperbolic tangent of (m - 1) / (m + 1), at most 0.172.
SHARDWISE_INLINE double log_of(double u) {
  constexpr std::uint64_t kBias = std::uint64_t{64} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(u);
  const std::uint64_t shifted =
      bits - std::bit_cast<std::uint64_t>(std::numbers::sqrt2 / 2) + kBias;
  const std::uint64_t exponent = shifted >> 52;
  const double m = std::bit_cast<double>(bits - (exponent << 52) + kBias);
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  return (to_double(exponent) - 64) * std::numbers::ln2 + 2 * (s + s * (z * sum));
}

/// Of x in [0, 2 pi]: the nearest multiple of pi / 2 is taken off in two parts, and the rest, at
/// most pi / 4, is put into the series of sine and cosine.
SHARDWISE_INLINE double cos_of(double x) {
  constexpr double kRounds = 0x1.8p52;
  constexpr double kHalfPi = 0x1.921fb544p+0;  // 33 bits: its multiples are exact
  constexpr double kHalfPiRest = 0x1.0b4611a626331p-34;
  const double rounded = x * (2 / std::numbers::pi) + kRounds;
  const std::uint64_t quarter = std::bit_cast<std::uint64_t>(rounded);
  const double multiple = rounded - kRounds;
  const double r = (x - multiple * kHalfPi) - multiple * kHalfPiRest;
  const double z = r * r;
  double sine = -1.0 / 1307674368000;  // 15!
  sine = sine * z + 1.0 / 6227020800;
  sine = sine * z - 1.0 / 39916800;
  sine = sine * z + 1.0 / 362880;
  sine = sine * z - 1.0 / 5040;
  sine = sine * z + 1.0 / 120;
  sine = sine * z - 1.0 / 6;
  sine = r + r * (z * sine);
  double cosine = 1.0 / 20922789888000;  // 16!
  cosine = cosine * z - 1.0 / 87178291200;
  cosine = cosine * z + 1.0 / 479001600;
  cosine = cosine * z - 1.0 / 3628800;
  cosine = cosine * z + 1.0 / 40320;
  cosine = cosine * z - 1.0 / 720;
  cosine = cosine * z + 1.0 / 24;
  cosine = cosine * z - 1.0 / 2;
  cosine = 1 + z * cosine;
  const double value = (quarter & 1) != 0 ? sine : cosine;
  const std::uint64_t sign = ((quarter + 1) & 2) << 62;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ sign);
}

/// kNormals numbers from `counter` on. \returns whether one of them is in doubt
SHARDWISE_VECTOR_CLONES bool draw_normals(std::uint64_t seed, std::uint64_t counter, float* to) {
  double numbers[kNormals];
  std::uint64_t doubts = 0;
  for (std::size_t i = 0; i < kNormals; ++i) {
    const std::uint64_t bits = random_bits(seed, counter + i);
    const double u = (to_double(bits >> 32) + 1) * 0x1p-32;
    const double v = to_double(bits & 0xffffffffULL) * 0x1p-32;
    const double log_u = log_of(u);
    const double cosine = cos_of(2 * std::numbers::pi * v);
    numbers[i] = std::sqrt(-2 * log_u) * cosine;
    doubts |= static_cast<std::uint64_t>(log_u == 0) |
              static_cast<std::uint64_t>(std::abs(cosine) < kSmallCosine);
  }
  for (std::size_t i = 0; i < kNormals; ++i) {
    const std::uint64_t rest = std::bit_cast<std::uint64_t>(numbers[i]) & 0x1fffffffULL;
    doubts |= static_cast<std::uint64_t>(rest - (0x10000000ULL - kDoubtful) < 2 * kDoubtful);
    to[i] = static_cast<float>(numbers[i]);
  }
  return doubts != 0;
}

}  // namespace

void random_normals(std::uint64_t seed, std::uint64_t first, std::span<float> to) {
  while (to.size() >= kNormals) {
    if (draw_normals(seed, first, to.data())) {
      for (std::size_t i = 0; i < kNormals; ++i) to[i] = random_normal(seed, first + i);
    }
    to = to.subspan(kNormals);
    first += kNormals;
  }
  for (float& each : to) each = random_normal(seed, first++);
}

}  // namespace shardwise::exec
