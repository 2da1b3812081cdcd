#include "executor/kernels/swiglu.h"

#include <algorithm>

#include "executor/kernels/wide.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kSwigluRowsATask = 16;

template <class E>
SHARDWISE_INLINE void swiglu_of(std::int64_t width, const E* gate, const E* up, E* y) {
  for_blocks_of<E>(width, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> gates;
    WideBlock<E> ups;
    const float* g = gates.of(gate + first, n);
    const float* u = ups.of(up + first, n);
    float* out = ups.for_store(y + first);
    for (std::int64_t i = 0; i < n; ++i) out[i] = g[i] / (1.0F + exp_of(-g[i])) * u[i];
    ups.store(n, y + first);
  });
}

/// In place: gradients of gates and ups. All three are blocks of their own.
SHARDWISE_INLINE void gate_gradients(std::int64_t n, float* gate, float* up, const float* d_y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gate[i];
    const float u = up[i];
    const float d = d_y[i];
    const float sigmoid = 1.0F / (1.0F + exp_of(-g));
    up[i] = d * g * sigmoid;
    gate[i] = d * u * sigmoid * (1.0F + g * (1.0F - sigmoid));
  }
}

SHARDWISE_INLINE void swiglu_gradients(std::int64_t width, float* gate, float* up,
                                       const float* d_y) {
  gate_gradients(width, gate, up, d_y);
}
SHARDWISE_INLINE void swiglu_gradients(std::int64_t width, Bf16* gate, Bf16* up, const Bf16* d_y) {
  for_blocks_of<Bf16>(width, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<Bf16> gates;
    WideBlock<Bf16> ups;
    WideBlock<Bf16> made;
    widen(gate + first, n, gates.values);
    widen(up + first, n, ups.values);
    gate_gradients(n, gates.values, ups.values, made.of(d_y + first, n));
    gates.store(n, gate + first);
    ups.store(n, up + first);
  });
}

SHARDWISE_VECTOR_CLONES void swiglu_forward_row(std::int64_t n, const float* g, const float* u,
                                                float* y) {
  swiglu_of(n, g, u, y);
}
SHARDWISE_VECTOR_CLONES void swiglu_forward_row(std::int64_t n, const Bf16* g, const Bf16* u,
                                                Bf16* y) {
  swiglu_of(n, g, u, y);
}
SHARDWISE_VECTOR_CLONES void swiglu_backward_row(std::int64_t n, float* g, float* u,
                                                 const float* d_y) {
  swiglu_gradients(n, g, u, d_y);
}
SHARDWISE_VECTOR_CLONES void swiglu_backward_row(std::int64_t n, Bf16* g, Bf16* u,
                                                 const Bf16* d_y) {
  swiglu_gradients(n, g, u, d_y);
}

/// Calls f(row) for all rows.
template <class F>
void for_swiglu_rows(std::int64_t rows, Workers& workers, F f) {
  workers.run((rows + kSwigluRowsATask - 1) / kSwigluRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kSwigluRowsATask);
    for (std::int64_t row = task * kSwigluRowsATask; row < end; ++row) f(row);
  });
}

}  // namespace

template <class E>
void swiglu_forward(std::int64_t rows, std::int64_t width, const E* gate_up, E* y,
                    Workers& workers) {
  for_swiglu_rows(rows, workers, [&](std::int64_t row) {
    const E* gate = gate_up + row * 2 * width;
    swiglu_forward_row(width, gate, gate + width, y + row * width);
  });
}

template <class E>
void swiglu_backward(std::int64_t rows, std::int64_t width, E* gate_up, const E* d_y,
                     Workers& workers) {
  for_swiglu_rows(rows, workers, [&](std::int64_t row) {
    E* gate = gate_up + row * 2 * width;
    swiglu_backward_row(width, gate, gate + width, d_y + row * width);
  });
}

template void swiglu_forward(std::int64_t, std::int64_t, const float*, float*, Workers&);
template void swiglu_forward(std::int64_t, std::int64_t, const Bf16*, Bf16*, Workers&);
template void swiglu_backward(std::int64_t, std::int64_t, float*, const float*, Workers&);
template void swiglu_backward(std::int64_t, std::int64_t, Bf16*, const Bf16*, Workers&);

}  // namespace shardwise::exec
