#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/gelu_of.h"
#include "executor/kernels/cuda/operations.h"

namespace shardwise::exec::cuda {
namespace {

/// The last chunk may be short.
template <Gelu kKind, bool kBackward, int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    gelu_elements(std::int64_t count, const E* x, const E* d_y, E* to) {
  const std::int64_t first = chunk_of_thread() * kStep;
  if (first + kStep <= count) {
    auto in = load_chunk<kStep>(x + first);
    const auto d = kBackward ? load_chunk<kStep>(d_y + first) : in;
    for (int i = 0; i < kStep; ++i) {
      in.at[i] = narrow<E>(gelu_of<kKind, kBackward>(widen(in.at[i]), widen(d.at[i])));
    }
    store_chunk(to + first, in);
    return;
  }
  for (std::int64_t i = first; i < count; ++i) {
    to[i] = narrow<E>(gelu_of<kKind, kBackward>(widen(x[i]), kBackward ? widen(d_y[i]) : 0.0F));
  }
}

template <Gelu kKind, bool kBackward, class E>
void start(std::int64_t count, const E* x, const E* d_y, E* to, cudaStream_t stream) {
  constexpr int kVector = Vector<E>::kCount;
  if (count == 0) return;
  const bool vectors = takes_vectors(x) && takes_vectors(d_y) && takes_vectors(to);
  launch(
      stream, "gelu", chunk_blocks(pieces(count, vectors ? kVector : 1)), dim3(kChunkThreads),
      vectors ? gelu_elements<kKind, kBackward, kVector, E> : gelu_elements<kKind, kBackward, 1, E>,
      count, x, d_y, to);
}

}  // namespace

template <class E>
void gelu_forward(Gelu kind, std::int64_t count, const E* x, E* y, cudaStream_t stream) {
  const E* const none = nullptr;
  if (kind == Gelu::tanh) return start<Gelu::tanh, false, E>(count, x, none, y, stream);
  start<Gelu::erf, false, E>(count, x, none, y, stream);
}
template <class E>
void gelu_backward(Gelu kind, std::int64_t count, const E* x, const E* d_y, E* d_x,
                   cudaStream_t stream) {
  if (kind == Gelu::tanh) return start<Gelu::tanh, true, E>(count, x, d_y, d_x, stream);
  start<Gelu::erf, true, E>(count, x, d_y, d_x, stream);
}

template void gelu_forward(Gelu, std::int64_t, const float*, float*, cudaStream_t);
template void gelu_forward(Gelu, std::int64_t, const Bf16*, Bf16*, cudaStream_t);
template void gelu_backward(Gelu, std::int64_t, const float*, const float*, float*, cudaStream_t);
template void gelu_backward(Gelu, std::int64_t, const Bf16*, const Bf16*, Bf16*, cudaStream_t);

}  // namespace shardwise::exec::cuda
