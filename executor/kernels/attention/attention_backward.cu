#include <cmath>
#include <type_traits>

#include "executor/kernels/cuda/attention_cuda.h"
#include "executor/kernels/cuda/device_code/attention_mma.h"
#include "executor/kernels/cuda/device_code/attention_rows.h"
#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/reduce.h"

namespace shardwise::exec::cuda {
namespace {

constexpr int kDeltaWarps = 8;  // of a block

/// The sum of out d_out of a row and head, which is that of p d_p, a warp.
template <class E>
__global__ void __launch_bounds__(kDeltaWarps* kWarp)
    make_deltas(HeadPlaces at, const E* out, const E* d_out, float* deltas) {
  const AttentionShape& s = at.shape;
  const std::int64_t n =
      static_cast<std::int64_t>(blockIdx.x) * kDeltaWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (n >= s.batch * s.heads * s.sequence) return;
  const std::int64_t head = n / s.sequence % s.heads;
  const std::int64_t first = at.out(n / s.sequence / s.heads, n % s.sequence, head);
  float sum = 0;
  for (std::int64_t i = threadIdx.x % kWarp; i < s.head_dim; i += kWarp) {
    sum += widen(out[first + i]) * widen(d_out[first + i]);
  }
  sum = reduce_warp(sum, Plus());
  if (threadIdx.x % kWarp == 0) deltas[n] = sum;
}

/// p and the gradient of its score, of one query and key.
struct ScoreGradient {
  float p = 0;
  float d = 0;

  __device__ ScoreGradient(const HeadPlaces& at, float score, float log_sum, float d_p, float delta)
      : p(exponential(score * at.scale - log_sum)), d(p * (d_p - delta) * at.scale) {}
  __device__ ScoreGradient() {}
};

/// Gradients of a tile of queries of a head, to fp32 [batch, heads, sequence, head_dim].
template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    query_gradients(HeadPlaces at, const E* qkv, const float* log_sums, const E* d_out,
                    const float* deltas, float* d_queries) {
  SHARDWISE_SHARED(float, queries, Tiles::kPlaces);
  SHARDWISE_SHARED(float, d_outs, Tiles::kPlaces);
  SHARDWISE_SHARED(float, keys, Tiles::kPlaces);
  SHARDWISE_SHARED(float, values, Tiles::kPlaces);
  SHARDWISE_SHARED(float, d_scores, Tiles::kScorePlaces);
  const AttentionShape& s = at.shape;
  const int d = static_cast<int>(s.head_dim);
  const std::int64_t of_all = s.batch * s.heads;
  const std::int64_t batch = blockIdx.x % of_all / s.heads;
  const std::int64_t head = blockIdx.x % s.heads;
  const std::int64_t first = blockIdx.x / of_all * Tiles::kRows;
  const std::int64_t end = smaller(first + Tiles::kRows, s.sequence);
  const std::int64_t query = first + Tiles::row();
  const bool is_one = query < s.sequence;
  const float log_sum = is_one ? log_sums[at.number(batch, head, query)] : 0.0F;
  const float delta = is_one ? deltas[at.number(batch, head, query)] : 0.0F;
  const int own = Tiles::row() * Tiles::kStride;
  float* const own_scores = d_scores + Tiles::row() * Tiles::kScoreStride;
  float sums[Tiles::kHeld] = {};
  Tiles::load(qkv + at.qkv(batch, first, head), at.width(), end - first, d, queries);
  Tiles::load(d_out + at.out(batch, first, head), s.heads * d, end - first, d, d_outs);
  const std::int64_t begin = at.first_tile(first, Tiles::kRows);
  for (std::int64_t key = begin; key < end; key += Tiles::kRows) {
    if (key > begin) __syncthreads();
    const std::int64_t rows = s.sequence - key;
    const std::int64_t of_kv = at.key_head(head);
    Tiles::load(qkv + at.qkv(batch, key, of_kv), at.width(), rows, d, keys);
    Tiles::load(qkv + at.qkv(batch, key, of_kv + s.kv_heads), at.width(), rows, d, values);
    __syncthreads();
    SHARDWISE_UNROLL
    for (int i = 0; i < Tiles::kScores; ++i) {
      const int k = Tiles::lane() + i * Tiles::kLanes;
      ScoreGradient made;
      if (at.sees(query, key + k)) {
        const float score = Tiles::dot(queries + own, keys + k * Tiles::kStride, d);
        const float d_p = Tiles::dot(d_outs + own, values + k * Tiles::kStride, d);
        made = ScoreGradient(at, score, log_sum, d_p, delta);
      }
      own_scores[k] = made.d;
    }
    __syncthreads();
    for (int k = 0; k < Tiles::kRows; ++k) {
      Tiles::add(own_scores[k], keys + k * Tiles::kStride, sums);
    }
  }
  if (is_one) Tiles::store(sums, d, d_queries + at.number(batch, head, query) * d);
}

/// Gradients of a tile of keys and values, of all heads that read them, in their places: no other
/// block reads those.
template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    key_gradients(HeadPlaces at, E* qkv, const float* log_sums, const E* d_out,
                  const float* deltas) {
  SHARDWISE_SHARED(float, queries, Tiles::kPlaces);
  SHARDWISE_SHARED(float, d_outs, Tiles::kPlaces);
  SHARDWISE_SHARED(float, keys, Tiles::kPlaces);
  SHARDWISE_SHARED(float, values, Tiles::kPlaces);
  SHARDWISE_SHARED(float, parts, Tiles::kScorePlaces);  // p, by key
  SHARDWISE_SHARED(float, d_scores, Tiles::kScorePlaces);
  const AttentionShape& s = at.shape;
  const int d = static_cast<int>(s.head_dim);
  const std::int64_t of_all = s.batch * s.kv_heads;
  const std::int64_t batch = blockIdx.x % of_all / s.kv_heads;
  const std::int64_t kv = blockIdx.x % s.kv_heads;
  const std::int64_t first = blockIdx.x / of_all * Tiles::kRows;
  const std::int64_t end = smaller(first + Tiles::kRows, s.sequence);
  const std::int64_t key = first + Tiles::row();
  const std::int64_t heads = s.heads / s.kv_heads;
  const int own = Tiles::row() * Tiles::kStride;
  const int own_scores = Tiles::row() * Tiles::kScoreStride;
  E* const k_rows = qkv + at.qkv(batch, first, s.heads + kv);
  E* const v_rows = k_rows + s.kv_heads * d;
  float d_key[Tiles::kHeld] = {};
  float d_value[Tiles::kHeld] = {};
  Tiles::load(k_rows, at.width(), end - first, d, keys);
  Tiles::load(v_rows, at.width(), end - first, d, values);
  for (std::int64_t head = kv * heads; head < (kv + 1) * heads; ++head) {
    for (std::int64_t query = first; query < at.queries_end(end); query += Tiles::kRows) {
      if (query > first || head > kv * heads) __syncthreads();
      const std::int64_t rows = s.sequence - query;
      Tiles::load(qkv + at.qkv(batch, query, head), at.width(), rows, d, queries);
      Tiles::load(d_out + at.out(batch, query, head), s.heads * d, rows, d, d_outs);
      __syncthreads();
      SHARDWISE_NO_UNROLL  // registers
          for (int i = 0; i < Tiles::kScores; ++i) {
        const int q = Tiles::lane() + i * Tiles::kLanes;
        ScoreGradient made;
        if (at.sees(query + q, key)) {
          const std::int64_t n = at.number(batch, head, query + q);
          const float score = Tiles::dot(queries + q * Tiles::kStride, keys + own, d);
          const float d_p = Tiles::dot(d_outs + q * Tiles::kStride, values + own, d);
          made = ScoreGradient(at, score, log_sums[n], d_p, deltas[n]);
        }
        parts[own_scores + q] = made.p;
        d_scores[own_scores + q] = made.d;
      }
      __syncthreads();
      SHARDWISE_NO_UNROLL  // registers
          for (int q = 0; q < Tiles::kRows; ++q) {
        Tiles::add(d_scores[own_scores + q], queries + q * Tiles::kStride, d_key);
        Tiles::add(parts[own_scores + q], d_outs + q * Tiles::kStride, d_value);
      }
    }
  }
  if (key >= s.sequence) return;
  Tiles::store(d_key, d, k_rows + Tiles::row() * at.width());
  Tiles::store(d_value, d, v_rows + Tiles::row() * at.width());
}

template <class E>
__global__ void __launch_bounds__(kChunkThreads)
    place_queries(HeadPlaces at, const float* d_queries, E* qkv) {
  const AttentionShape& s = at.shape;
  const std::int64_t n = chunk_of_thread();
  const std::int64_t row = n / s.head_dim;
  if (row >= s.batch * s.heads * s.sequence) return;
  const std::int64_t head = row / s.sequence % s.heads;
  const std::int64_t batch = row / s.sequence / s.heads;
  qkv[at.qkv(batch, row % s.sequence, head) + n % s.head_dim] = narrow<E>(d_queries[n]);
}

}  // namespace

template <class E>
void attention_backward(const AttentionShape& s, E* qkv, const E* out, const float* log_sums,
                        const E* d_out, float* workspace, cudaStream_t stream) {
  const std::int64_t rows = s.batch * s.heads * s.sequence;
  if (rows == 0) return;
  const HeadPlaces places = {s, 1.0F / std::sqrt(static_cast<float>(s.head_dim))};
  float* const d_queries = workspace;
  float* const deltas = workspace + rows * s.head_dim;
  launch(stream, "attention deltas", dim3(static_cast<unsigned>(pieces(rows, kDeltaWarps))),
         dim3(kDeltaWarps * kWarp), make_deltas<E>, places, out, d_out, deltas);
  if constexpr (std::is_same_v<E, Bf16>) {
    auto* const narrow_d_queries = reinterpret_cast<Bf16*>(d_queries);
    if (takes_tensor_cores(s, qkv, d_out) && takes_vectors(narrow_d_queries)) {
      return attention_backward_mma(s, qkv, log_sums, d_out, deltas, narrow_d_queries, stream);
    }
  }
  with_head_tiles(s.head_dim, [&]<class Tiles>() {
    const std::int64_t tiles = pieces(s.sequence, Tiles::kRows);
    launch(stream, "attention query gradients",
           dim3(static_cast<unsigned>(s.batch * s.heads * tiles)), dim3(Tiles::kThreads),
           query_gradients<Tiles, E>, places, qkv, log_sums, d_out, deltas, d_queries);
    launch(stream, "attention key gradients",
           dim3(static_cast<unsigned>(s.batch * s.kv_heads * tiles)), dim3(Tiles::kThreads),
           key_gradients<Tiles, E>, places, qkv, log_sums, d_out, deltas);
  });
  launch(stream, "attention query gradients, stored", chunk_blocks(rows * s.head_dim),
         dim3(kChunkThreads), place_queries<E>, places, d_queries, qkv);
}

template void attention_backward(const AttentionShape&, float*, const float*, const float*,
                                 const float*, float*, cudaStream_t);
template void attention_backward(const AttentionShape&, Bf16*, const Bf16*, const float*,
                                 const Bf16*, float*, cudaStream_t);

}  // namespace shardwise::exec::cuda
