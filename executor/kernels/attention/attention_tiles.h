#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "executor/kernels/attention/attention.h"
#include "executor/kernels/products/gemm.h"
#include "executor/kernels/wide.h"

namespace shardwise::exec {

inline constexpr std::int64_t kTile = 128;  // queries, and keys, of a tile of scores
inline constexpr std::int64_t kTileElements = kTile * kMaxHeadDim;

/// Rows of one head as fp32: the tensor itself, or a copy in `place` where it is bf16.
template <class E>
MatrixView<const float> head_rows(const E* first, std::int64_t stride, std::int64_t rows,
                                  std::int64_t head_dim, float* place) {
  if constexpr (std::is_same_v<E, float>) {
    return {first, stride};
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
      widen_run(first + r * stride, head_dim, place + r * head_dim);
    }
    return {place, head_dim};
  }
}

/// A row of fp32 to where it is stored.
inline void store_row(const float* from, std::int64_t count, float* to) {
  std::copy_n(from, count, to);
}
inline void store_row(const float* from, std::int64_t count, Bf16* to) {
  narrow_run(from, count, to);
}

inline MatrixView<const float> transposed(MatrixView<const float> m) {
  m.transposed = !m.transposed;
  return m;
}

/// The first tile of keys that a query from `row` on sees, and what of a tile one query sees.
inline std::int64_t first_key(const AttentionShape& s, std::int64_t row) {
  return s.window > 0 ? std::max<std::int64_t>(0, row - s.window + 1) : 0;
}
inline std::int64_t first_tile(const AttentionShape& s, std::int64_t row) {
  return first_key(s, row) / kTile * kTile;
}
struct Visible {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline Visible visible(const AttentionShape& s, std::int64_t row, std::int64_t key,
                       std::int64_t keys) {
  const std::int64_t begin = std::clamp<std::int64_t>(first_key(s, row) - key, 0, keys);
  return {begin, std::clamp<std::int64_t>(row - key + 1, begin, keys)};
}

}  // namespace shardwise::exec
