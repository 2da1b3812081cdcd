#include <cmath>

#include "executor/kernels/attention/attention_tiles.h"

namespace shardwise::exec {
namespace {

/// Turns scores into probabilities from the logarithm of their sum; what is not seen into 0.
SHARDWISE_VECTOR_CLONES void probabilities(float* scores, std::int64_t count, Visible see,
                                           float scale, float log_sum) {
  for (std::int64_t i = 0; i < see.begin; ++i) scores[i] = 0;
  for (std::int64_t i = see.end; i < count; ++i) scores[i] = 0;
  for (std::int64_t i = see.begin; i < see.end; ++i) {
    scores[i] = exp_of(scores[i] * scale - log_sum);
  }
}

/// Turns probabilities p into the scores' gradients p (d_p - delta) scale.
SHARDWISE_VECTOR_CLONES void score_gradients(float* p, const float* d_p, std::int64_t count,
                                             float delta, float scale) {
  for (std::int64_t i = 0; i < count; ++i) p[i] *= (d_p[i] - delta) * scale;
}

/// All query heads of one key/value head of one sequence.
template <class E>
class Backward {
 public:
  Backward(const AttentionShape& shape, E* qkv, const E* out, const float* log_sums, const E* d_out,
           float* workspace)
      : s_(shape),
        scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
        qkv_(qkv),
        out_(out),
        log_sums_(log_sums),
        d_out_(d_out),
        d_queries_(workspace),
        deltas_(workspace + shape.batch * shape.heads * shape.sequence * shape.head_dim) {}

  void group(std::int64_t batch, std::int64_t kv) const {
    const std::int64_t heads = s_.heads / s_.kv_heads;
    for (std::int64_t h = kv * heads; h < (kv + 1) * heads; ++h) make_deltas(batch, h);
    for (std::int64_t key = 0; key < s_.sequence; key += kTile) key_tile(batch, kv, key);
    for (std::int64_t h = kv * heads; h < (kv + 1) * heads; ++h) store_queries(batch, h);
  }

 private:
  /// The gradient of a softmax needs the sum of p d_p of a row, which is that of out d_out.
  void make_deltas(std::int64_t batch, std::int64_t head) const {
    for (std::int64_t row = 0; row < s_.sequence; ++row) {
      const std::int64_t at = out_row(batch, row, head);
      deltas_[number(batch, head, row)] = lane_sum(s_.head_dim, [&](std::int64_t i) {
        return to_float(out_[at + i]) * to_float(d_out_[at + i]);
      });
    }
  }

  /// Gradients of `keys` keys and values, which then take their places: no later tile reads them.
  void key_tile(std::int64_t batch, std::int64_t kv, std::int64_t first) const {
    float key[kTileElements];
    float value[kTileElements];
    float d_key[kTileElements];
    float d_value[kTileElements];
    const std::int64_t keys = std::min(kTile, s_.sequence - first);
    const std::int64_t d = s_.head_dim;
    const std::int64_t heads = s_.heads / s_.kv_heads;
    E* k_rows = qkv_row(batch, first, s_.heads + kv);
    E* v_rows = qkv_row(batch, first, s_.heads + s_.kv_heads + kv);
    const Tile tile = {first, keys, head_rows<E>(k_rows, s_.qkv_width(), keys, d, key),
                       head_rows<E>(v_rows, s_.qkv_width(), keys, d, value)};
    std::fill_n(d_key, keys * d, 0.0F);
    std::fill_n(d_value, keys * d, 0.0F);
    for (std::int64_t h = kv * heads; h < (kv + 1) * heads; ++h) {
      for (std::int64_t row = first; row < s_.sequence; row += kTile) {
        if (first >= first_tile(s_, row)) scores_tile(batch, h, row, tile, d_key, d_value);
      }
    }
    store(d_key, keys, k_rows);
    store(d_value, keys, v_rows);
  }

  struct Tile {
    std::int64_t first = 0;
    std::int64_t keys = 0;
    MatrixView<const float> key;
    MatrixView<const float> value;
  };

  void scores_tile(std::int64_t batch, std::int64_t head, std::int64_t row, const Tile& tile,
                   float* d_key, float* d_value) const {
    float query[kTileElements];
    float d_out[kTileElements];
    float scores[kTile * kTile];
    float d_scores[kTile * kTile];
    const std::int64_t rows = std::min(kTile, s_.sequence - row);
    const std::int64_t d = s_.head_dim;
    const std::int64_t keys = tile.keys;
    const auto q = head_rows<E>(qkv_row(batch, row, head), s_.qkv_width(), rows, d, query);
    const auto d_o = head_rows<E>(d_out_ + out_row(batch, row, head), s_.heads * d, rows, d, d_out);
    const MatrixView<const float> p = {scores, keys};
    tile_gemm({rows, keys, d}, q, transposed(tile.key), {scores, keys}, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      probabilities(scores + r * keys, keys, visible(s_, row + r, tile.first, keys), scale_,
                    log_sums_[number(batch, head, row + r)]);
    }
    tile_gemm({keys, d, rows}, transposed(p), d_o, {d_value, d}, true);
    tile_gemm({rows, keys, d}, d_o, transposed(tile.value), {d_scores, keys}, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      score_gradients(scores + r * keys, d_scores + r * keys, keys,
                      deltas_[number(batch, head, row + r)], scale_);
    }
    tile_gemm({keys, d, rows}, transposed(p), q, {d_key, d}, true);
    float* d_query = d_queries_ + number(batch, head, row) * d;
    tile_gemm({rows, d, keys}, p, tile.key, {d_query, d}, tile.first > first_tile(s_, row));
  }

  void store_queries(std::int64_t batch, std::int64_t head) const {
    store(d_queries_ + number(batch, head, 0) * s_.head_dim, s_.sequence, qkv_row(batch, 0, head));
  }

  void store(const float* from, std::int64_t rows, E* to) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      store_row(from + r * s_.head_dim, s_.head_dim, to + r * s_.qkv_width());
    }
  }
  E* qkv_row(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return qkv_ + (batch * s_.sequence + row) * s_.qkv_width() + head * s_.head_dim;
  }
  std::int64_t out_row(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return ((batch * s_.sequence + row) * s_.heads + head) * s_.head_dim;
  }
  std::int64_t number(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return (batch * s_.heads + head) * s_.sequence + row;
  }

  const AttentionShape& s_;
  float scale_;
  E* qkv_;
  const E* out_;
  const float* log_sums_;
  const E* d_out_;
  float* d_queries_;  // [batch, heads, sequence, head_dim]
  float* deltas_;     // [batch, heads, sequence]
};

}  // namespace

std::int64_t attention_backward_bytes(const AttentionShape& s) {
  return s.batch * s.heads * s.sequence * (s.head_dim + 1) *
         static_cast<std::int64_t>(sizeof(float));
}

template <class E>
void attention_backward(const AttentionShape& s, E* qkv, const E* out, const float* log_sums,
                        const E* d_out, float* workspace, Workers& workers) {
  const Backward<E> backward(s, qkv, out, log_sums, d_out, workspace);
  workers.run(s.batch * s.kv_heads,
              [&](std::int64_t task) { backward.group(task / s.kv_heads, task % s.kv_heads); });
}

template void attention_backward(const AttentionShape&, float*, const float*, const float*,
                                 const float*, float*, Workers&);
template void attention_backward(const AttentionShape&, Bf16*, const Bf16*, const float*,
                                 const Bf16*, float*, Workers&);

}  // namespace shardwise::exec
