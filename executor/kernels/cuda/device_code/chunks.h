#pragma once

#include "executor/kernels/cuda/device_code/device.h"

namespace shardwise::exec::cuda {

/// kStep elements that lie together: a vector, or one where nothing is known of their place.
template <class E, int kStep>
struct alignas(sizeof(E) * static_cast<std::size_t>(kStep)) Chunk {
  E at[kStep];
};
template <int kStep, class E>
__device__ Chunk<E, kStep> load_chunk(const E* from) {
  return *reinterpret_cast<const Chunk<E, kStep>*>(from);
}
template <class E, int kStep>
__device__ void store_chunk(E* to, const Chunk<E, kStep>& chunk) {
  *reinterpret_cast<Chunk<E, kStep>*>(to) = chunk;
}

inline constexpr int kChunkThreads = 256;

/// Which of all chunks of a grid is the thread's.
inline __device__ std::int64_t chunk_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kChunkThreads + static_cast<int>(threadIdx.x);
}
inline dim3 chunk_blocks(std::int64_t chunks) {
  return dim3(static_cast<unsigned>(pieces(chunks, kChunkThreads)));
}
/// Bound that chunk_of_thread() is below.
inline std::int64_t chunks_of(dim3 blocks) { return std::int64_t{blocks.x} * kChunkThreads; }

/// Division of a row of E among the threads of a team: thread t has the chunks t, kTeam + t, …
/// \tparam kHeld  chunks of a thread at most, vectors that it keeps in registers; 0: any number of
///     single elements, which it reads again
template <class E, int kTeam, int kHeld>
struct RowShare {
  static constexpr int kThreads = kTeam;
  static constexpr bool kHolds = kHeld > 0;
  static constexpr int kStep = kHolds ? Vector<E>::kCount : 1;
  static constexpr int kPlaces = kHolds ? kHeld : 1;
  static constexpr int kMostWidth = kHeld * kTeam * kStep;

  /// Calls f(place, column) for the thread's chunks; place numbers them where they are held.
  template <class F>
  static __device__ void each(int width, int thread, F f) {
    if constexpr (kHolds) {
      SHARDWISE_UNROLL
      for (int p = 0; p < kHeld; ++p) {
        const int column = (p * kTeam + thread) * kStep;
        if (column < width) f(p, column);
      }
    } else {
      for (int column = thread; column < width; column += kTeam) f(0, column);
    }
  }

  /// A row of which a thread has read its share, or will each time that it asks.
  class Row {
   public:
    __device__ Row(const E* row, int width, int thread) : row_(row) {
      if constexpr (kHolds) {
        each(width, thread, [&](int p, int column) { held_[p] = load_chunk<kStep>(row + column); });
      }
    }
    __device__ Chunk<E, kStep> at(int place, int column) const {
      if constexpr (kHolds) return held_[place];
      return load_chunk<kStep>(row_ + column);
    }

   private:
    const E* row_;
    Chunk<E, kStep> held_[kPlaces];
  };
};

}  // namespace shardwise::exec::cuda
