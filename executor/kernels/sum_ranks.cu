#include "executor/kernels/cuda/device_code/typed.h"
#include "executor/kernels/cuda/movement.h"
#include "executor/kernels/with_dtype.h"

namespace shardwise::exec::cuda {
namespace {

/// pieces [ranks, stride], shard [count]. The last chunk may be short.
template <int kStep, class E, class G>
__global__ void __launch_bounds__(kChunkThreads)
    sum_of_ranks(std::int64_t count, std::int64_t ranks, std::int64_t stride, const E* each,
                 G* shard, bool joins) {
  const std::int64_t first = chunk_of_thread() * kStep;
  if (first + kStep <= count) {
    float sums[kStep];
    const auto of_first = load_chunk<kStep>(each + first);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) sums[i] = widen(of_first.at[i]);
    for (std::int64_t rank = 1; rank < ranks; ++rank) {
      const auto in = load_chunk<kStep>(each + rank * stride + first);
      SHARDWISE_UNROLL
      for (int i = 0; i < kStep; ++i) sums[i] += widen(in.at[i]);
    }
    Chunk<G, kStep> made = {};
    if (joins) made = load_chunk<kStep>(shard + first);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) {
      made.at[i] = narrow<G>(joins ? widen(made.at[i]) + sums[i] : sums[i]);
    }
    store_chunk(shard + first, made);
    return;
  }
  for (std::int64_t i = first; i < count; ++i) {
    float sum = widen(each[i]);
    for (std::int64_t rank = 1; rank < ranks; ++rank) sum += widen(each[rank * stride + i]);
    shard[i] = narrow<G>(joins ? widen(shard[i]) + sum : sum);
  }
}

}  // namespace

void sum_ranks(const SumRanksWork& w, cudaStream_t stream) {
  const auto count = static_cast<std::int64_t>(w.shard.count);
  if (count == 0) return;
  with_dtype(w.pieces.dtype, [&]<class E>(E) {
    with_dtype(w.shard.dtype, [&]<class G>(G) {
      constexpr int kStep = kSharedStep<E, G>;
      const E* const each = elements<E>(w.pieces);
      G* const shard = elements<G>(w.shard);
      const bool vectors = takes_vectors(each, w.stride) && takes_vectors(shard);
      launch(stream, "sum ranks", chunk_blocks(pieces(count, vectors ? kStep : 1)),
             dim3(kChunkThreads), vectors ? sum_of_ranks<kStep, E, G> : sum_of_ranks<1, E, G>,
             count, w.ranks, w.stride, each, shard, w.joins);
    });
  });
}

}  // namespace shardwise::exec::cuda
