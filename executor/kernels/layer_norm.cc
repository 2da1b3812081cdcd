#include <cmath>

#include "executor/kernels/norm_rows.h"

namespace shardwise::exec {
namespace {

struct Moments {
  float inverse = 0;  // 1 / sigma
  float mean = 0;
};

template <class E>
SHARDWISE_INLINE Moments layer_norm_of(const E* x, const E* weight, const E* bias,
                                       std::int64_t width, float epsilon, E* y) {
  const float n = static_cast<float>(width);
  const float mean = lane_sum(width, [&](std::int64_t i) { return to_float(x[i]); }) / n;
  const float squares = lane_sum(width, [&](std::int64_t i) {
    const float d = to_float(x[i]) - mean;
    return d * d;
  });
  const float inverse = 1.0F / std::sqrt(squares / n + epsilon);
  for (std::int64_t i = 0; i < width; ++i) {
    const float normed = (to_float(x[i]) - mean) * inverse * to_float(weight[i]);
    y[i] = from_float<E>(bias == nullptr ? normed : normed + to_float(bias[i]));
  }
  return {inverse, mean};
}

/// With x^ = (x - mean) / sigma and g = d_y weight: d_x = (g - mean(g) - x^ mean(g x^)) / sigma.
template <class E>
SHARDWISE_INLINE void layer_norm_gradient(const E* x, const E* weight, const Moments& m,
                                          const E* d_y, std::int64_t width, E* d_x, bool adds) {
  const float n = static_cast<float>(width);
  const float sum =
      lane_sum(width, [&](std::int64_t i) { return to_float(d_y[i]) * to_float(weight[i]); });
  const float dot = lane_sum(width, [&](std::int64_t i) {
    return to_float(d_y[i]) * to_float(weight[i]) * (to_float(x[i]) - m.mean);
  });
  const float mean = sum / n;
  const float along = dot * m.inverse * m.inverse / n;
  for (std::int64_t i = 0; i < width; ++i) {
    const float g = to_float(d_y[i]) * to_float(weight[i]);
    const float d = (g - mean - (to_float(x[i]) - m.mean) * along) * m.inverse;
    d_x[i] = from_float<E>(adds ? to_float(d_x[i]) + d : d);
  }
}

SHARDWISE_VECTOR_CLONES Moments layer_norm_forward_row(const float* x, const float* w,
                                                       const float* b, std::int64_t n, float eps,
                                                       float* y) {
  return layer_norm_of(x, w, b, n, eps, y);
}
SHARDWISE_VECTOR_CLONES Moments layer_norm_forward_row(const Bf16* x, const Bf16* w, const Bf16* b,
                                                       std::int64_t n, float eps, Bf16* y) {
  return layer_norm_of(x, w, b, n, eps, y);
}
SHARDWISE_VECTOR_CLONES void layer_norm_backward_row(const float* x, const float* w,
                                                     const Moments& m, const float* d_y,
                                                     std::int64_t n, float* d_x, bool adds) {
  layer_norm_gradient(x, w, m, d_y, n, d_x, adds);
}
SHARDWISE_VECTOR_CLONES void layer_norm_backward_row(const Bf16* x, const Bf16* w, const Moments& m,
                                                     const Bf16* d_y, std::int64_t n, Bf16* d_x,
                                                     bool adds) {
  layer_norm_gradient(x, w, m, d_y, n, d_x, adds);
}

/// The terms of d_weight, then those of d_bias.
template <class E>
SHARDWISE_INLINE void layer_norm_weight_terms(const E* x, const Moments& m, const E* d_y,
                                              std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] += to_float(d_y[i]) * (to_float(x[i]) - m.mean) * m.inverse;
  }
  for (std::int64_t i = 0; i < count; ++i) sums[kNormColumns + i] += to_float(d_y[i]);
}

}  // namespace

template <class E>
void layer_norm_forward(const NormShape& s, const E* x, const E* weight, const E* bias, E* y,
                        float* statistics, Workers& workers) {
  const std::int64_t count = s.rows * s.segments;
  for_segments(s, workers, [&](std::int64_t row, std::int64_t segment) {
    const Moments m =
        layer_norm_forward_row(x + row * s.x_stride + segment * s.width, weight, bias, s.width,
                               s.epsilon, y + row * s.y_stride + segment * s.width);
    statistics[row * s.segments + segment] = m.inverse;
    statistics[count + row * s.segments + segment] = m.mean;
  });
}

template <class E, class G>
void layer_norm_backward(const NormShape& s, const E* x, const E* weight, const float* statistics,
                         const E* d_y, E* d_x, bool adds, G* d_weight, G* d_bias,
                         Workers& workers) {
  const auto moments = [&](std::int64_t row, std::int64_t segment) {
    const std::int64_t at = row * s.segments + segment;
    return Moments{statistics[at], statistics[s.rows * s.segments + at]};
  };
  if (d_weight != nullptr || d_bias != nullptr) {  // first: d_x may take d_y's place
    sum_columns<2>(
        s, workers,
        [&](std::int64_t row, std::int64_t segment, std::int64_t first, std::int64_t count,
            float* sums) {
          const std::int64_t offset = segment * s.width + first;
          layer_norm_weight_terms(x + row * s.x_stride + offset, moments(row, segment),
                                  d_y + row * s.y_stride + offset, count, sums);
        },
        [&](std::int64_t first, std::int64_t count, const float* sums) {
          for (std::int64_t i = 0; i < count; ++i) {
            if (d_weight != nullptr) add_rounded(d_weight[first + i], sums[i]);
            if (d_bias != nullptr) add_rounded(d_bias[first + i], sums[kNormColumns + i]);
          }
        });
  }
  for_segments(s, workers, [&](std::int64_t row, std::int64_t segment) {
    const std::int64_t at = row * s.x_stride + segment * s.width;
    layer_norm_backward_row(x + at, weight, moments(row, segment),
                            d_y + row * s.y_stride + segment * s.width, s.width, d_x + at, adds);
  });
}

template void layer_norm_forward(const NormShape&, const float*, const float*, const float*, float*,
                                 float*, Workers&);
template void layer_norm_forward(const NormShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*,
                                 float*, Workers&);
template void layer_norm_backward(const NormShape&, const float*, const float*, const float*,
                                  const float*, float*, bool, float*, float*, Workers&);
template void layer_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                  const Bf16*, Bf16*, bool, float*, float*, Workers&);
template void layer_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                  const Bf16*, Bf16*, bool, Bf16*, Bf16*, Workers&);

}  // namespace shardwise::exec
