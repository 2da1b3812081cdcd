#pragma once

#include "executor/kernels/attention/attention.h"
#include "executor/kernels/cuda/device_code/device.h"

namespace shardwise::exec::cuda {

/// Share of tiles of rows of a head in a block: kLanes threads have a row of queries (or of keys).
/// \tparam kMost  elements of a head at most
template <int kMost>
struct HeadTiles {
  static constexpr int kRows = kMost > 128 ? 8 : 16;  // of a tile of queries, and of keys
  static constexpr int kLanes = 8;
  static constexpr int kThreads = kRows * kLanes;
  static constexpr int kHeld = kMost / kLanes;     // elements of its row that a thread sums
  static constexpr int kScores = kRows / kLanes;   // of its row that a thread makes
  static constexpr int kStride = kMost + 1;        // of rows in shared memory
  static constexpr int kPlaces = kRows * kStride;  // floats
  static constexpr int kScoreStride = kRows + 1;
  static constexpr int kScorePlaces = kRows * kScoreStride;

  static __device__ int row() { return static_cast<int>(threadIdx.x) / kLanes; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kLanes; }

  /// `rows` rows to `tile`; zeros in the rest of it.
  template <class E>
  static __device__ void load(const E* first, std::int64_t stride, std::int64_t rows, int head_dim,
                              float* tile) {
    const E* const from = first + row() * stride;
    SHARDWISE_NO_UNROLL  // registers
        for (int i = lane(); i < kMost; i += kLanes) {
      tile[row() * kStride + i] = row() < rows && i < head_dim ? widen(from[i]) : 0.0F;
    }
  }
  static __device__ float dot(const float* a, const float* b, int head_dim) {
    float sum = 0;
    for (int i = 0; i < head_dim; ++i) sum += a[i] * b[i];
    return sum;
  }
  /// sums += factor x row, the thread's elements of it.
  static __device__ void add(float factor, const float* row, float* sums) {
    SHARDWISE_UNROLL
    for (int i = 0; i < kHeld; ++i) sums[i] += factor * row[lane() + i * kLanes];
  }
  template <class E>
  static __device__ void store(const float* sums, int head_dim, E* to) {
    SHARDWISE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int at = lane() + i * kLanes;
      if (at < head_dim) to[at] = narrow<E>(sums[i]);
    }
  }
};

/// Where things of one head are, and who sees whom.
struct HeadPlaces {
  AttentionShape shape;
  float scale;  // of scores

  __device__ std::int64_t qkv(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return (batch * shape.sequence + row) * width() + head * shape.head_dim;
  }
  __device__ std::int64_t out(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return ((batch * shape.sequence + row) * shape.heads + head) * shape.head_dim;
  }
  __device__ std::int64_t number(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return (batch * shape.heads + head) * shape.sequence + row;
  }
  __device__ std::int64_t width() const {
    return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  }
  __device__ std::int64_t key_head(std::int64_t head) const {
    return shape.heads + head / (shape.heads / shape.kv_heads);
  }
  __device__ bool sees(std::int64_t query, std::int64_t key) const {
    return key <= query && query < shape.sequence &&
           (shape.window == 0 || key > query - shape.window);
  }
  /// First of the tiles of `rows` keys that queries from `query` on see.
  __device__ std::int64_t first_tile(std::int64_t query, int rows) const {
    const std::int64_t key = query - shape.window + 1;
    return shape.window > 0 && key > 0 ? key / rows * rows : 0;
  }
  /// Behind the last query that sees a key before `end`.
  __device__ std::int64_t queries_end(std::int64_t end) const {
    const std::int64_t all = shape.sequence;
    return shape.window > 0 && end - 1 + shape.window < all ? end - 1 + shape.window : all;
  }
};

inline __device__ std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// f.template operator()<HeadTiles<…>>() with tiles that head_dim fits.
template <class F>
void with_head_tiles(std::int64_t head_dim, F f) {
  if (head_dim <= 64) return f.template operator()<HeadTiles<64>>();
  if (head_dim <= 128) return f.template operator()<HeadTiles<128>>();
  f.template operator()<HeadTiles<256>>();
}

}  // namespace shardwise::exec::cuda
