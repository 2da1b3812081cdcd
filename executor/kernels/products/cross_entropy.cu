#include "executor/kernels/products/cross_entropy.h"

#include <algorithm>

#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/reduce.h"
#include "executor/kernels/cuda/operations.h"

namespace shardwise::exec::cuda {
namespace {

/// A row a block, read twice: once for the largest logit and the sum beside it, once to become the
/// gradient. What lies between the vocabulary and the next row becomes zeros, to the end of a
/// chunk.
template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    loss_of_rows(std::int64_t vocabulary, std::int64_t stride, const std::int64_t* targets,
                 const float* scale, E* logits, float* losses) {
  using Sums = Team<kChunkThreads>;
  SHARDWISE_SHARED(float, places, Sums::kPlaces);
  E* const row = logits + blockIdx.x * stride;
  const std::int64_t target = targets[blockIdx.x];
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kStep;
  constexpr std::int64_t kNext = static_cast<std::int64_t>(kChunkThreads) * kStep;
  if (target == kIgnored) {
    Chunk<E, kStep> zeros;
    for (int i = 0; i < kStep; ++i) zeros.at[i] = narrow<E>(0.0F);
    for (std::int64_t at = first; at < vocabulary; at += kNext) store_chunk(row + at, zeros);
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    return;
  }
  const float at_target = widen(row[target]);  // before anybody writes: sums are between
  float highest = -INFINITY;
  float sum = 0;
  for (std::int64_t at = first; at < vocabulary; at += kNext) {
    const auto in = load_chunk<kStep>(row + at);
    const auto left = static_cast<int>(vocabulary - at);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) {
      if (kStep > 1 && i >= left) continue;
      // A logit that is no number goes into the sum, and so into the loss. Of -inf, which has no
      // difference to itself, the highest so far counts once.
      const float each = widen(in.at[i]);
      if (each > highest) {
        sum = sum * exponential(highest - each) + 1.0F;
        highest = each;
      } else {
        sum += each == highest ? 1.0F : exponential(each - highest);
      }
    }
  }
  Sums team(places);
  const float largest = team.largest(highest);
  const float all = team.sum(sum == 0 ? 0.0F : sum * exponential(highest - largest));
  const float share = *scale / all;
  for (std::int64_t at = first; at < vocabulary; at += kNext) {
    auto made = load_chunk<kStep>(row + at);
    const auto left = static_cast<int>(vocabulary - at);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) {
      const float part = exponential(widen(made.at[i]) - largest) * share;
      const float gradient = at + i == target ? part - *scale : part;
      made.at[i] = narrow<E>(kStep > 1 && i >= left ? 0.0F : gradient);
    }
    store_chunk(row + at, made);
  }
  if (threadIdx.x == 0) losses[blockIdx.x] = largest + logf(all) - at_target;
}

/// A part a block: a thread adds every so many-th row, the first all of theirs.
__global__ void __launch_bounds__(kChunkThreads)
    add_losses(std::int64_t rows, const std::int64_t* targets, const float* losses,
               LossSum* parts) {
  SHARDWISE_SHARED(double, warp_sums, kChunkThreads / kWarp);
  SHARDWISE_SHARED(std::int64_t, warp_tokens, kChunkThreads / kWarp);
  double sum = 0;
  std::int64_t tokens = 0;
  const std::int64_t next = static_cast<std::int64_t>(gridDim.x) * kChunkThreads;
  for (std::int64_t row = chunk_of_thread(); row < rows; row += next) {
    if (targets[row] == kIgnored) continue;
    sum += losses[row];
    ++tokens;
  }
  sum = reduce_warp(sum, Plus());
  tokens = reduce_warp(tokens, Plus());
  if (threadIdx.x % kWarp == 0) {
    warp_sums[threadIdx.x / kWarp] = sum;
    warp_tokens[threadIdx.x / kWarp] = tokens;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kChunkThreads / kWarp; ++w) {
    sum += warp_sums[w];
    tokens += warp_tokens[w];
  }
  parts[blockIdx.x] = {sum, tokens};
}

/// One warp.
__global__ void __launch_bounds__(kWarp)
    add_loss_parts(int count, const LossSum* parts, LossSum* loss) {
  double sum = 0;
  std::int64_t tokens = 0;
  for (int part = static_cast<int>(threadIdx.x); part < count; part += kWarp) {
    sum += parts[part].loss;
    tokens += parts[part].tokens;
  }
  sum = reduce_warp(sum, Plus());
  tokens = reduce_warp(tokens, Plus());
  if (threadIdx.x != 0) return;
  loss->loss += sum;
  loss->tokens += tokens;
}

constexpr std::int64_t kMostLossParts = 128;

}  // namespace

std::int64_t sum_losses_bytes() {
  return kMostLossParts * static_cast<std::int64_t>(sizeof(LossSum));
}

void sum_losses(std::int64_t rows, const std::int64_t* targets, const float* losses, LossSum* loss,
                std::byte* workspace, cudaStream_t stream) {
  if (rows == 0) return;
  auto* const parts = reinterpret_cast<LossSum*>(workspace);
  const auto count = static_cast<int>(std::min(kMostLossParts, pieces(rows, kChunkThreads)));
  launch(stream, "sum losses", dim3(static_cast<unsigned>(count)), dim3(kChunkThreads), add_losses,
         rows, targets, losses, parts);
  launch(stream, "loss parts", dim3(1), dim3(kWarp), add_loss_parts, count, parts, loss);
}

template <class E>
void loss_rows(std::int64_t rows, std::int64_t vocabulary, std::int64_t stride,
               const std::int64_t* targets, const float* scale, E* logits, float* losses,
               cudaStream_t stream) {
  if (rows == 0) return;
  const bool vectors = takes_vectors(logits, stride);
  launch(stream, "loss rows", dim3(static_cast<unsigned>(rows)), dim3(kChunkThreads),
         vectors ? loss_of_rows<Vector<E>::kCount, E> : loss_of_rows<1, E>, vocabulary, stride,
         targets, scale, logits, losses);
}

template void loss_rows(std::int64_t, std::int64_t, std::int64_t, const std::int64_t*, const float*,
                        float*, float*, cudaStream_t);
template void loss_rows(std::int64_t, std::int64_t, std::int64_t, const std::int64_t*, const float*,
                        Bf16*, float*, cudaStream_t);

}  // namespace shardwise::exec::cuda
