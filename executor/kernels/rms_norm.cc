#include <cmath>

#include "executor/kernels/norm_rows.h"

namespace shardwise::exec {
namespace {

template <class E>
SHARDWISE_INLINE float rms_norm_of(const E* x, const E* weight, std::int64_t width, float epsilon,
                                   E* y) {
  const float squares =
      lane_sum(width, [&](std::int64_t i) { return to_float(x[i]) * to_float(x[i]); });
  const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(width) + epsilon);
  for (std::int64_t i = 0; i < width; ++i) {
    y[i] = from_float<E>(to_float(x[i]) * inverse * to_float(weight[i]));
  }
  return inverse;
}

/// With x^ = x / sigma and g = d_y weight: d_x = (g - x^ mean(g x^)) / sigma.
template <class E>
SHARDWISE_INLINE void rms_norm_gradient(const E* x, const E* weight, float inverse, const E* d_y,
                                        std::int64_t width, E* d_x, bool adds) {
  const float dot = lane_sum(width, [&](std::int64_t i) {
    return to_float(d_y[i]) * to_float(weight[i]) * to_float(x[i]);
  });
  const float along = dot * inverse * inverse / static_cast<float>(width);
  for (std::int64_t i = 0; i < width; ++i) {
    const float d = (to_float(d_y[i]) * to_float(weight[i]) - to_float(x[i]) * along) * inverse;
    d_x[i] = from_float<E>(adds ? to_float(d_x[i]) + d : d);
  }
}

template <class E>
SHARDWISE_INLINE void rms_norm_weight_terms(const E* x, float inverse, const E* d_y,
                                            std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += to_float(d_y[i]) * to_float(x[i]) * inverse;
}

SHARDWISE_VECTOR_CLONES float rms_norm_forward_row(const float* x, const float* w, std::int64_t n,
                                                   float eps, float* y) {
  return rms_norm_of(x, w, n, eps, y);
}
SHARDWISE_VECTOR_CLONES float rms_norm_forward_row(const Bf16* x, const Bf16* w, std::int64_t n,
                                                   float eps, Bf16* y) {
  return rms_norm_of(x, w, n, eps, y);
}
SHARDWISE_VECTOR_CLONES void rms_norm_backward_row(const float* x, const float* w, float inverse,
                                                   const float* d_y, std::int64_t n, float* d_x,
                                                   bool adds) {
  rms_norm_gradient(x, w, inverse, d_y, n, d_x, adds);
}
SHARDWISE_VECTOR_CLONES void rms_norm_backward_row(const Bf16* x, const Bf16* w, float inverse,
                                                   const Bf16* d_y, std::int64_t n, Bf16* d_x,
                                                   bool adds) {
  rms_norm_gradient(x, w, inverse, d_y, n, d_x, adds);
}

}  // namespace

template <class E>
void rms_norm_forward(const NormShape& s, const E* x, const E* weight, E* y, float* statistics,
                      Workers& workers) {
  for_segments(s, workers, [&](std::int64_t row, std::int64_t segment) {
    statistics[row * s.segments + segment] =
        rms_norm_forward_row(x + row * s.x_stride + segment * s.width, weight, s.width, s.epsilon,
                             y + row * s.y_stride + segment * s.width);
  });
}

template <class E, class G>
void rms_norm_backward(const NormShape& s, const E* x, const E* weight, const float* statistics,
                       const E* d_y, E* d_x, bool adds, G* d_weight, Workers& workers) {
  if (d_weight != nullptr) {  // first: d_x may take d_y's place
    sum_columns<1>(
        s, workers,
        [&](std::int64_t row, std::int64_t segment, std::int64_t first, std::int64_t count,
            float* sums) {
          const std::int64_t offset = segment * s.width + first;
          rms_norm_weight_terms(x + row * s.x_stride + offset,
                                statistics[row * s.segments + segment],
                                d_y + row * s.y_stride + offset, count, sums);
        },
        [&](std::int64_t first, std::int64_t count, const float* sums) {
          for (std::int64_t i = 0; i < count; ++i) add_rounded(d_weight[first + i], sums[i]);
        });
  }
  for_segments(s, workers, [&](std::int64_t row, std::int64_t segment) {
    const std::int64_t at = row * s.x_stride + segment * s.width;
    rms_norm_backward_row(x + at, weight, statistics[row * s.segments + segment],
                          d_y + row * s.y_stride + segment * s.width, s.width, d_x + at, adds);
  });
}

template void rms_norm_forward(const NormShape&, const float*, const float*, float*, float*,
                               Workers&);
template void rms_norm_forward(const NormShape&, const Bf16*, const Bf16*, Bf16*, float*, Workers&);
template void rms_norm_backward(const NormShape&, const float*, const float*, const float*,
                                const float*, float*, bool, float*, Workers&);
template void rms_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                const Bf16*, Bf16*, bool, float*, Workers&);
template void rms_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                const Bf16*, Bf16*, bool, Bf16*, Workers&);

}  // namespace shardwise::exec
