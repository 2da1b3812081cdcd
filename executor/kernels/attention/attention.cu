#include <cmath>
#include <type_traits>

#include "executor/kernels/cuda/attention_cuda.h"
#include "executor/kernels/cuda/device_code/attention_mma.h"
#include "executor/kernels/cuda/device_code/attention_rows.h"

namespace shardwise::exec::cuda {
namespace {

/// A tile of queries of a head a block. Blocks that begin first have the last queries, which see
/// most.
template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    attend(HeadPlaces at, const E* qkv, E* out, float* log_sums) {
  SHARDWISE_SHARED(float, queries, Tiles::kPlaces);
  SHARDWISE_SHARED(float, keys, Tiles::kPlaces);
  SHARDWISE_SHARED(float, values, Tiles::kPlaces);
  SHARDWISE_SHARED(float, scores, Tiles::kScorePlaces);
  const AttentionShape& s = at.shape;
  const int d = static_cast<int>(s.head_dim);
  const std::int64_t of_all = s.batch * s.heads;
  const std::int64_t batch = blockIdx.x % of_all / s.heads;
  const std::int64_t head = blockIdx.x % s.heads;
  const std::int64_t tile = gridDim.x / of_all - 1 - blockIdx.x / of_all;
  const std::int64_t first = tile * Tiles::kRows;
  const std::int64_t query = first + Tiles::row();
  const std::int64_t end = smaller(first + Tiles::kRows, s.sequence);
  const float* const own = queries + Tiles::row() * Tiles::kStride;
  float* const own_scores = scores + Tiles::row() * Tiles::kScoreStride;
  float sums[Tiles::kHeld] = {};
  float highest = -INFINITY;
  float all = 0;
  Tiles::load(qkv + at.qkv(batch, first, head), at.width(), end - first, d, queries);
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
      own_scores[k] = at.sees(query, key + k)
                          ? Tiles::dot(own, keys + k * Tiles::kStride, d) * at.scale
                          : -INFINITY;
    }
    __syncthreads();
    float now = highest;
    for (int k = 0; k < Tiles::kRows; ++k) now = own_scores[k] > now ? own_scores[k] : now;
    if (now == -INFINITY) continue;  // the row has seen no key yet
    const float before = exponential(highest - now);
    highest = now;
    all *= before;
    SHARDWISE_UNROLL
    for (int i = 0; i < Tiles::kHeld; ++i) sums[i] *= before;
    for (int k = 0; k < Tiles::kRows; ++k) {
      const float p = exponential(own_scores[k] - highest);
      all += p;
      Tiles::add(p, values + k * Tiles::kStride, sums);
    }
  }
  if (query >= s.sequence) return;
  SHARDWISE_UNROLL
  for (int i = 0; i < Tiles::kHeld; ++i) sums[i] /= all;
  Tiles::store(sums, d, out + at.out(batch, query, head));
  if (Tiles::lane() == 0) log_sums[at.number(batch, head, query)] = highest + logf(all);
}

}  // namespace

template <class E>
void attention_forward(const AttentionShape& s, const E* qkv, E* out, float* log_sums,
                       cudaStream_t stream) {
  if (s.batch * s.sequence == 0) return;
  if constexpr (std::is_same_v<E, Bf16>) {
    if (takes_tensor_cores(s, qkv, out)) {
      return attention_forward_mma(s, qkv, out, log_sums, stream);
    }
  }
  const HeadPlaces places = {s, 1.0F / std::sqrt(static_cast<float>(s.head_dim))};
  with_head_tiles(s.head_dim, [&]<class Tiles>() {
    const auto blocks = static_cast<unsigned>(s.batch * s.heads * pieces(s.sequence, Tiles::kRows));
    launch(stream, "attention", dim3(blocks), dim3(Tiles::kThreads), attend<Tiles, E>, places, qkv,
           out, log_sums);
  });
}

template void attention_forward(const AttentionShape&, const float*, float*, float*, cudaStream_t);
template void attention_forward(const AttentionShape&, const Bf16*, Bf16*, float*, cudaStream_t);

}  // namespace shardwise::exec::cuda
