#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/divisor.h"
#include "executor/kernels/cuda/operations.h"

namespace shardwise::exec::cuda {
namespace {

/// A chunk of a row of gates and of its ups.
template <int kStep>
struct GatePlace {
  std::int64_t gate;  // in gate_up
  std::int64_t y;
  bool is_one;

  /// \param chunks  of a row
  __device__ GatePlace(std::int64_t rows, std::int64_t width, Divisor chunks) {
    const std::int64_t chunk = chunk_of_thread();
    y = chunk * kStep;
    gate = y + chunks.quotient(chunk) * width;
    is_one = y < rows * width;
  }
};

template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    swiglu_elements(std::int64_t rows, std::int64_t width, Divisor chunks, const E* gate_up, E* y) {
  const GatePlace<kStep> place(rows, width, chunks);
  if (!place.is_one) return;
  const auto gates = load_chunk<kStep>(gate_up + place.gate);
  auto made = load_chunk<kStep>(gate_up + place.gate + width);
  for (int i = 0; i < kStep; ++i) {
    const float g = widen(gates.at[i]);
    made.at[i] = narrow<E>(g / (1.0F + exponential(-g)) * widen(made.at[i]));
  }
  store_chunk(y + place.y, made);
}

template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    swiglu_gradients(std::int64_t rows, std::int64_t width, Divisor chunks, E* gate_up,
                     const E* d_y) {
  const GatePlace<kStep> place(rows, width, chunks);
  if (!place.is_one) return;
  auto gates = load_chunk<kStep>(gate_up + place.gate);
  auto ups = load_chunk<kStep>(gate_up + place.gate + width);
  const auto ds = load_chunk<kStep>(d_y + place.y);
  for (int i = 0; i < kStep; ++i) {
    const float g = widen(gates.at[i]);
    const float u = widen(ups.at[i]);
    const float d = widen(ds.at[i]);
    const float sigmoid = 1.0F / (1.0F + exponential(-g));
    ups.at[i] = narrow<E>(d * g * sigmoid);
    gates.at[i] = narrow<E>(d * u * sigmoid * (1.0F + g * (1.0F - sigmoid)));
  }
  store_chunk(gate_up + place.gate, gates);
  store_chunk(gate_up + place.gate + width, ups);
}

}  // namespace

template <class E>
void swiglu_forward(std::int64_t rows, std::int64_t width, const E* gate_up, E* y,
                    cudaStream_t stream) {
  constexpr int kVector = Vector<E>::kCount;
  if (rows * width == 0) return;
  const bool vectors = takes_vectors(gate_up, width) && takes_vectors(y);
  const int step = vectors ? kVector : 1;
  const dim3 blocks = chunk_blocks(rows * width / step);
  launch(stream, "swiglu", blocks, dim3(kChunkThreads),
         vectors ? swiglu_elements<kVector, E> : swiglu_elements<1, E>, rows, width,
         Divisor(width / step, chunks_of(blocks)), gate_up, y);
}

template <class E>
void swiglu_backward(std::int64_t rows, std::int64_t width, E* gate_up, const E* d_y,
                     cudaStream_t stream) {
  constexpr int kVector = Vector<E>::kCount;
  if (rows * width == 0) return;
  const bool vectors = takes_vectors(gate_up, width) && takes_vectors(d_y);
  const int step = vectors ? kVector : 1;
  const dim3 blocks = chunk_blocks(rows * width / step);
  launch(stream, "swiglu backward", blocks, dim3(kChunkThreads),
         vectors ? swiglu_gradients<kVector, E> : swiglu_gradients<1, E>, rows, width,
         Divisor(width / step, chunks_of(blocks)), gate_up, d_y);
}

template void swiglu_forward(std::int64_t, std::int64_t, const float*, float*, cudaStream_t);
template void swiglu_forward(std::int64_t, std::int64_t, const Bf16*, Bf16*, cudaStream_t);
template void swiglu_backward(std::int64_t, std::int64_t, float*, const float*, cudaStream_t);
template void swiglu_backward(std::int64_t, std::int64_t, Bf16*, const Bf16*, cudaStream_t);

}  // namespace shardwise::exec::cuda
