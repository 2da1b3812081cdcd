#include "executor/kernels/gelu.h"

#include <cmath>
#include <numbers>

#include "executor/kernels/runs.h"
#include "executor/kernels/wide.h"

namespace shardwise::exec {
namespace {

constexpr float kCubic = 0.044715F;
constexpr float kSlope = 0.797884561F;  // sqrt(2 / pi)

SHARDWISE_INLINE float tanh_of(float x) { return 1.0F - 2.0F / (1.0F + exp_of(2.0F * x)); }

SHARDWISE_INLINE float value(float x) {
  return 0.5F * x * (1.0F + tanh_of(kSlope * (x + kCubic * x * x * x)));
}
SHARDWISE_INLINE float slope(float x) {
  const float t = tanh_of(kSlope * (x + kCubic * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kSlope * (1.0F + 3.0F * kCubic * x * x);
}

float erf_value(float x) { return 0.5F * x * (1.0F + std::erf(x / std::numbers::sqrt2_v<float>)); }
float erf_slope(float x) {
  constexpr float kDensity = 0.398942280F;  // 1 / sqrt(2 pi)
  return 0.5F * (1.0F + std::erf(x / std::numbers::sqrt2_v<float>)) +
         x * kDensity * exp_of(-0.5F * x * x);
}

template <class E>
SHARDWISE_INLINE void tanh_values(std::int64_t count, const E* x, E* y) {
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(x + first, n);
    float* out = block.for_store(y + first);
    for (std::int64_t i = 0; i < n; ++i) out[i] = value(in[i]);
    block.store(n, y + first);
  });
}
template <class E>
SHARDWISE_INLINE void tanh_slopes(std::int64_t count, const E* x, const E* d_y, E* d_x) {
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    WideBlock<E> made;
    const float* in = block.of(x + first, n);
    const float* d_out = made.of(d_y + first, n);
    float* d_in = made.for_store(d_x + first);
    for (std::int64_t i = 0; i < n; ++i) d_in[i] = slope(in[i]) * d_out[i];
    made.store(n, d_x + first);
  });
}

SHARDWISE_VECTOR_CLONES void forward_run(std::int64_t n, const float* x, float* y) {
  tanh_values(n, x, y);
}
SHARDWISE_VECTOR_CLONES void forward_run(std::int64_t n, const Bf16* x, Bf16* y) {
  tanh_values(n, x, y);
}
SHARDWISE_VECTOR_CLONES void backward_run(std::int64_t n, const float* x, const float* d_y,
                                          float* d_x) {
  tanh_slopes(n, x, d_y, d_x);
}
SHARDWISE_VECTOR_CLONES void backward_run(std::int64_t n, const Bf16* x, const Bf16* d_y,
                                          Bf16* d_x) {
  tanh_slopes(n, x, d_y, d_x);
}

}  // namespace

template <class E>
void gelu_forward(Gelu kind, std::int64_t count, const E* x, E* y, Workers& workers) {
  for_runs(count, workers, [&](std::int64_t first, std::int64_t n) {
    if (kind == Gelu::tanh) return forward_run(n, x + first, y + first);
    for (std::int64_t i = first; i < first + n; ++i)
      y[i] = from_float<E>(erf_value(to_float(x[i])));
  });
}

template <class E>
void gelu_backward(Gelu kind, std::int64_t count, const E* x, const E* d_y, E* d_x,
                   Workers& workers) {
  for_runs(count, workers, [&](std::int64_t first, std::int64_t n) {
    if (kind == Gelu::tanh) return backward_run(n, x + first, d_y + first, d_x + first);
    for (std::int64_t i = first; i < first + n; ++i) {
      d_x[i] = from_float<E>(erf_slope(to_float(x[i])) * to_float(d_y[i]));
    }
  });
}

template void gelu_forward(Gelu, std::int64_t, const float*, float*, Workers&);
template void gelu_forward(Gelu, std::int64_t, const Bf16*, Bf16*, Workers&);
template void gelu_backward(Gelu, std::int64_t, const float*, const float*, float*, Workers&);
template void gelu_backward(Gelu, std::int64_t, const Bf16*, const Bf16*, Bf16*, Workers&);

}  // namespace shardwise::exec
