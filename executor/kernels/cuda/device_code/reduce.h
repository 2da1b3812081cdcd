#pragma once

#include "executor/kernels/cuda/device_code/device.h"

namespace shardwise::exec::cuda {

// Sums and maxima of a team of threads, in an order that the team's size alone decides. All threads
// of the team call them and get the result.

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

/// \tparam kLanes  of a warp, a power of two that lie together: the others need not call it
template <int kLanes = kWarp, class T, class F>
__device__ T reduce_warp(T x, F join) {
  constexpr unsigned kPart = (1U << kLanes % kWarp) - 1U;  // of fewer than all lanes
  const unsigned lanes =
      kLanes == kWarp ? kWholeWarp : kPart << (threadIdx.x % kWarp / kLanes * kLanes);
  SHARDWISE_UNROLL
  for (int by = kLanes / 2; by > 0; by /= 2) x = join(x, __shfl_xor_sync(lanes, x, by));
  return x;
}

/// \tparam kTeam  threads: a warp, a part of one as reduce_warp() has it, or those of a block,
/// which is then one-dimensional
template <int kTeam>
class Team {
 public:
  static constexpr int kWarps = kTeam / kWarp;
  /// Floats of shared memory.
  static constexpr int kPlaces = kWarps > 0 ? 2 * kWarps : 1;

  explicit __device__ Team(float* places) : places_(places) {}

  template <class F>
  __device__ float reduce(float x, F join) {
    x = reduce_warp < kTeam < kWarp ? kTeam : kWarp > (x, join);
    if constexpr (kTeam > kWarp) {
      // By turns: who is ahead at the next sum writes where nobody reads any more, as all have
      // left this sum when the one after that begins.
      float* const place = &places_[turn_ == 0 ? 0 : kWarps];
      turn_ ^= 1;
      if (threadIdx.x % kWarp == 0) place[threadIdx.x / kWarp] = x;
      __syncthreads();
      x = place[0];
      SHARDWISE_UNROLL
      for (int w = 1; w < kWarps; ++w) x = join(x, place[w]);
    }
    return x;
  }
  __device__ float sum(float x) { return reduce(x, Plus()); }
  __device__ float largest(float x) { return reduce(x, Larger()); }

 private:
  float* places_;
  int turn_ = 0;
};

}  // namespace shardwise::exec::cuda
