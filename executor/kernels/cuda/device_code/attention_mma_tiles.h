#pragma once

#include <cmath>
#include <numbers>

#include "executor/kernels/cuda/device_code/attention_rows.h"
#include "executor/kernels/cuda/device_code/row_tiles.h"

namespace shardwise::exec::cuda {

/// Where a block's tile of rows of one head is. Blocks of one tile of every head follow each other.
struct TileOfHead {
  int batch;
  int head;
  int first;  // row
  int rows;   // of the tile that there are, at least 1

  /// \param heads  of queries, or of keys  \param from_last  the last tile is the first block's
  __device__ TileOfHead(const AttentionShape& s, std::int64_t heads, int tile_rows,
                        bool from_last) {
    const auto of_all = static_cast<unsigned>(s.batch * heads);
    const unsigned begun = blockIdx.x / of_all;
    const unsigned tile = from_last ? gridDim.x / of_all - 1 - begun : begun;
    const unsigned n = blockIdx.x % of_all;
    batch = static_cast<int>(n / static_cast<unsigned>(heads));
    head = static_cast<int>(n % static_cast<unsigned>(heads));
    first = static_cast<int>(tile) * tile_rows;
    rows = static_cast<int>(smaller(tile_rows, s.sequence - first));
  }
};

/// Which keys a query sees: those of (query - window, query].
struct SeenKeys {
  int window;  // all before where it is no smaller than the sequence

  explicit __device__ SeenKeys(const AttentionShape& s)
      : window(static_cast<int>(s.window > 0 && s.window < s.sequence ? s.window : s.sequence)) {}

  __device__ bool sees(int query, int key) const { return key <= query && query - key < window; }
  /// Whether each of `queries` from `query` on sees each of `keys` from `key` on.
  __device__ bool sees_all(int query, int queries, int key, int keys) const {
    return key + keys - 1 <= query && query + queries - 1 - key < window;
  }
  /// Whether any does.
  __device__ bool sees_any(int query, int queries, int key, int keys) const {
    return key <= query + queries - 1 && query - (key + keys - 1) < window;
  }
  /// The first key that anybody from `query` on sees, at a multiple of `tile`.
  __device__ int first_key(int query, int tile) const {
    const int key = query - window + 1;
    return key > 0 ? key / tile * tile : 0;
  }
  /// Behind the last query that sees a key before `end`.
  __device__ int queries_end(int end, int sequence) const {
    return end - 1 + window < sequence ? end - 1 + window : sequence;
  }
};

/// Dynamic shared memory of two tiles by turns, each of rows of two tensors.
template <class Tile>
class TilePairs {
 public:
  static constexpr int kElements = 4 * Tile::kElements;

  explicit __device__ TilePairs(Bf16* shared) : shared_(shared) {}
  __device__ Bf16* first(int turn) const { return shared_ + 2 * turn * Tile::kElements; }
  __device__ Bf16* second(int turn) const { return first(turn) + Tile::kElements; }

 private:
  Bf16* shared_;
};

/// Heads of queries that read one of keys. In 32 bits, as divisions of 64 are calls.
inline __device__ int group_of(const AttentionShape& s) {
  return static_cast<int>(s.heads) / static_cast<int>(s.kv_heads);
}

/// The keys and values that a head's queries read.
template <class Tile>
struct KeysOfHead {
  const Bf16* first;  // key
  int width;          // from row to row
  int to_values;      // from a key to its value
  int sequence;

  __device__ KeysOfHead(const HeadPlaces& at, const TileOfHead& tile, const Bf16* qkv)
      : first(qkv + at.qkv(tile.batch, 0, at.shape.heads + tile.head / group_of(at.shape))),
        width(static_cast<int>(at.width())),
        to_values(static_cast<int>(at.shape.kv_heads) * Tile::kWidth),
        sequence(static_cast<int>(at.shape.sequence)) {}

  /// Begins to copy a tile of them.
  __device__ void copy(int key, const TilePairs<Tile>& pairs, int turn) const {
    const Bf16* const from = first + static_cast<std::int64_t>(key) * width;
    Tile::copy(from, width, sequence - key, pairs.first(turn));
    Tile::copy(from + to_values, width, sequence - key, pairs.second(turn));
  }
};

inline float scale_of(const AttentionShape& s) {
  return 1.0F / std::sqrt(static_cast<float>(s.head_dim));
}
inline constexpr float kLog2E = std::numbers::log2e_v<float>;

/// f.template operator()<head_dim>() of those that there are kernels for.
template <class F>
void with_head_dim(std::int64_t head_dim, F f) {
  if (head_dim == 64) return f.template operator()<64>();
  if (head_dim == 80) return f.template operator()<80>();
  if (head_dim == 96) return f.template operator()<96>();
  f.template operator()<128>();
}

}  // namespace shardwise::exec::cuda
