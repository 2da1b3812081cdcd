#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace shardwise::exec {

// Functions that a vectorised loop calls are part of it, in every instruction set of the loop.
#define SHARDWISE_INLINE __attribute__((always_inline)) inline
#define SHARDWISE_INLINE_CALL __attribute__((always_inline))  // of a lambda, after its parameters

/// The upper half of an fp32: what weights and activations are stored in under precision bf16.
/// Kernels compute in fp32 and round to nearest, ties to even, when they store, as a GPU does.
struct Bf16 {
  std::uint16_t bits = 0;
};

SHARDWISE_INLINE float to_float(float x) { return x; }
SHARDWISE_INLINE float to_float(Bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16U);
}

template <class E>
SHARDWISE_INLINE E from_float(float x);
template <>
SHARDWISE_INLINE float from_float<float>(float x) {
  return x;
}
template <>
SHARDWISE_INLINE Bf16 from_float<Bf16>(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t quiet = (bits >> 16U) | 0x40U;  // a NaN stays one
  const std::uint32_t nearest = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : nearest)};
}

/// sum += x, rounded when it is stored.
template <class G>
SHARDWISE_INLINE void add_rounded(G& sum, float x) {
  sum = from_float<G>(to_float(sum) + x);
}

/// e^x with a relative error below 2e-7 on the normal range; 0 below it. Branch-free, so that a
/// loop over it becomes vector code. 2^n e^r with |r| <= ln 2 / 2, e^r by its Taylor polynomial of
/// degree 7, whose remainder is below 6e-9.
SHARDWISE_INLINE float exp_of(float x) {
  constexpr float kLog2E = std::numbers::log2e_v<float>;
  constexpr float kLn2High = 355.0F / 512.0F;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kLeast = -87.3F;  // e^x is the least normal number nearby
  constexpr float kMost = 88.3F;
  const float inside = x < kLeast ? kLeast : (x > kMost ? kMost : x);
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (inside * kLog2E + kRound) - kRound;
  const float r = (inside - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = static_cast<std::int32_t>(n) + 127;
  const float power = std::bit_cast<float>(static_cast<std::uint32_t>(exponent) << 23U);
  return x < kLeast ? 0.0F : p * power;
}

/// A sum of many terms, in an order that their number alone decides and that vector code keeps.
class LaneSum {
 public:
  /// Adds f(0) … f(count - 1). \pre every count but the last is a multiple of 16
  template <class F>
  SHARDWISE_INLINE void add(std::int64_t count, F f) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lane_[l] += f(i + l);
    }
    for (int l = 0; i < count; ++i, ++l) lane_[l] += f(i);
  }
  SHARDWISE_INLINE float sum() {
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) lane_[l] += lane_[l + width];
    }
    return lane_[0];
  }

 private:
  static constexpr int kLanes = 16;
  float lane_[kLanes] = {};
};

/// The sum of f(0) … f(count - 1), as LaneSum adds.
template <class F>
SHARDWISE_INLINE float lane_sum(std::int64_t count, F f) {
  LaneSum lanes;
  lanes.add(count, f);
  return lanes.sum();
}

/// The largest of f(0) … f(count - 1) and `least`.
template <class F>
SHARDWISE_INLINE float lane_max(std::int64_t count, float least, F f) {
  constexpr int kLanes = 16;
  float lane[kLanes];
  for (float& each : lane) each = least;
  const auto larger = [](float a, float b) { return a > b ? a : b; };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lane[l] = larger(f(i + l), lane[l]);
  }
  for (; i < count; ++i) lane[0] = larger(f(i), lane[0]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] = larger(lane[l + width], lane[l]);
  }
  return lane[0];
}

// A loop compiled for this instruction set, for AVX2 and for AVX-512, chosen when the program
// starts: binaries run on every x86-64. (Named by feature: GCC 12 does not inline into clones that
// are named by architecture.) Clang's sanitizers do not work with such functions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SHARDWISE_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SHARDWISE_VECTOR_CLONES
#endif

}  // namespace shardwise::exec
