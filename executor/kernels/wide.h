#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "executor/kernels/element.h"

namespace shardwise::exec {

// Loops over bf16 compute on blocks that were widened to fp32 and are narrowed again: a loop over
// numbers of 16 bits that computes in 32 becomes vectors of a quarter of the registers.

// Widens `count` elements between places that do not overlap.
SHARDWISE_INLINE void widen(const Bf16* __restrict from, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}
SHARDWISE_INLINE void narrow(const float* __restrict from, std::int64_t count,
                             Bf16* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<Bf16>(from[i]);
}

/// Place for a block in fp32; none where numbers are fp32 already.
template <class E>
struct WideBlock {
  static constexpr bool kNone = std::is_same_v<E, float>;
  static constexpr std::int64_t kMost = kNone ? std::numeric_limits<std::int64_t>::max() : 256;
  float values[kNone ? 1 : 256];  // uninitialised: it is written before it is read

  /// Numbers to be read: where they are, or their copy.
  SHARDWISE_INLINE const float* of(const E* from, std::int64_t count) {
    if constexpr (kNone) {
      return from;
    } else {
      widen(from, count, values);
      return values;
    }
  }
  /// Where numbers that are to be stored in `to` are written, before store().
  SHARDWISE_INLINE float* for_store(E* to) {
    if constexpr (kNone) {
      return to;
    } else {
      return values;
    }
  }
  SHARDWISE_INLINE void store(std::int64_t count, E* to) const {
    if constexpr (!kNone) narrow(values, count, to);
  }
};

/// Calls f(first, count) for blocks of numbers of type E that fit a WideBlock: of fp32, for all.
template <class E, class F>
SHARDWISE_INLINE void for_blocks_of(std::int64_t count, F f) {
  for (std::int64_t first = 0; first < count; first += WideBlock<E>::kMost) {
    f(first, std::min(WideBlock<E>::kMost, count - first));
    if constexpr (WideBlock<E>::kNone) return;
  }
}

/// The sum of f(a[i]) over a row.
template <class E, class F>
SHARDWISE_INLINE float wide_sum(std::int64_t count, const E* a, F f) {
  LaneSum lanes;
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(a + first, n);
    lanes.add(n, [&](std::int64_t i) SHARDWISE_INLINE_CALL { return f(in[i]); });
  });
  return lanes.sum();
}

// Widens rows at a stride, and serves other sources' loops.
void widen_run(const Bf16* from, std::int64_t count, float* to);
void narrow_run(const float* from, std::int64_t count, Bf16* to);

}  // namespace shardwise::exec
