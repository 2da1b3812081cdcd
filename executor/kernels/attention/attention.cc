#include "executor/kernels/attention/attention.h"

#include <cmath>
#include <limits>

#include "executor/kernels/attention/attention_tiles.h"

namespace shardwise::exec {
namespace {

struct RunningRow {
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

/// Turns visible scores into e^(scale s - maximum), the others into 0, and scales what was summed
/// before to the new maximum.
SHARDWISE_VECTOR_CLONES void soften(float* scores, std::int64_t count, Visible see, float scale,
                                    RunningRow& row, float* out, std::int64_t head_dim) {
  for (std::int64_t i = 0; i < see.begin; ++i) scores[i] = 0;
  for (std::int64_t i = see.end; i < count; ++i) scores[i] = 0;
  if (see.begin == see.end) return;
  float* seen = scores + see.begin;
  const std::int64_t n = see.end - see.begin;
  const float highest = lane_max(n, row.maximum, [&](std::int64_t i) { return seen[i] * scale; });
  for (std::int64_t i = 0; i < n; ++i) seen[i] = exp_of(seen[i] * scale - highest);
  const float before = exp_of(row.maximum - highest);
  row.sum = row.sum * before + lane_sum(n, [&](std::int64_t i) { return seen[i]; });
  row.maximum = highest;
  for (std::int64_t i = 0; i < head_dim; ++i) out[i] *= before;
}

template <class E>
class Forward {
 public:
  Forward(const AttentionShape& shape, const E* qkv, E* out, float* log_sums)
      : s_(shape),
        scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
        qkv_(qkv),
        out_(out),
        log_sums_(log_sums) {}

  /// `rows` queries of one head from `row` on.
  void tile(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    float query[kTileElements];
    float key[kTileElements];
    float value[kTileElements];
    float sum[kTileElements];
    float scores[kTile * kTile];
    RunningRow running[kTile];
    const std::int64_t rows = std::min(kTile, s_.sequence - row);
    const std::int64_t d = s_.head_dim;
    const std::int64_t kv = head / (s_.heads / s_.kv_heads);
    const auto q = at(batch, row, head, rows, query);
    std::fill_n(sum, rows * d, 0.0F);
    for (std::int64_t first = first_tile(s_, row); first < row + rows; first += kTile) {
      const std::int64_t keys = std::min(kTile, s_.sequence - first);
      const auto k = at(batch, first, s_.heads + kv, keys, key);
      const auto v = at(batch, first, s_.heads + s_.kv_heads + kv, keys, value);
      tile_gemm({rows, keys, d}, q, transposed(k), {scores, keys}, false);
      for (std::int64_t r = 0; r < rows; ++r) {
        soften(scores + r * keys, keys, visible(s_, row + r, first, keys), scale_, running[r],
               sum + r * d, d);
      }
      tile_gemm({rows, d, keys}, {scores, keys}, v, {sum, d}, true);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      E* to = out_ + (((batch * s_.sequence + row + r) * s_.heads) + head) * d;
      const float inverse = 1.0F / running[r].sum;
      float* made = sum + r * d;
      for (std::int64_t i = 0; i < d; ++i) made[i] *= inverse;
      store_row(made, d, to);
      log_sums_[(batch * s_.heads + head) * s_.sequence + row + r] =
          running[r].maximum + std::log(running[r].sum);
    }
  }

 private:
  MatrixView<const float> at(std::int64_t batch, std::int64_t row, std::int64_t head,
                             std::int64_t rows, float* place) const {
    const E* first = qkv_ + (batch * s_.sequence + row) * s_.qkv_width() + head * s_.head_dim;
    return head_rows(first, s_.qkv_width(), rows, s_.head_dim, place);
  }

  const AttentionShape& s_;
  float scale_;
  const E* qkv_;
  E* out_;
  float* log_sums_;
};

}  // namespace

template <class E>
void attention_forward(const AttentionShape& s, const E* qkv, E* out, float* log_sums,
                       Workers& workers) {
  const Forward<E> forward(s, qkv, out, log_sums);
  const std::int64_t tiles = (s.sequence + kTile - 1) / kTile;
  workers.run(s.batch * s.heads * tiles, [&](std::int64_t task) {
    const std::int64_t of_batch = task / tiles;
    // The last queries see most: they come first, so that threads end together.
    const std::int64_t tile = tiles - 1 - task % tiles;
    forward.tile(of_batch / s.heads, of_batch % s.heads, tile * kTile);
  });
}

template void attention_forward(const AttentionShape&, const float*, float*, float*, Workers&);
template void attention_forward(const AttentionShape&, const Bf16*, Bf16*, float*, Workers&);

}  // namespace shardwise::exec
