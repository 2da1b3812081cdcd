#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// Norm of `segments` runs of `width` elements in each of `rows` rows, from the row's start
/// on; stride elements from row to row. One segment is a norm of the hidden state, one a head that
/// of queries or keys (Qwen3).
struct NormShape {
  std::int64_t rows = 0;
  std::int64_t segments = 1;
  std::int64_t width = 0;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  float epsilon = 0;
};

// Statistics, fp32: first 1 / sigma of [rows, segments]; of a LayerNorm then the means of
// [rows, segments]. E is float or Bf16; sums are fp32. y may be x where the strides are equal.

/// y = x / sqrt(mean(x^2) + epsilon) * weight.   weight [width]
/// Zhang and Sennrich, arXiv:1910.07467, equation 4.
template <class E>
void rms_norm_forward(const NormShape& shape, const E* x, const E* weight, E* y, float* statistics,
                      Workers& workers);

/// d_x, with x's stride, from d_y, with y's stride; added to d_x when `adds` (a residual stream).
/// d_x may be d_y where the strides are equal.
/// \param d_weight  added to, in G as linear_backward_weight; null when not trained
template <class E, class G>
void rms_norm_backward(const NormShape& shape, const E* x, const E* weight, const float* statistics,
                       const E* d_y, E* d_x, bool adds, G* d_weight, Workers& workers);

/// y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.   weight, bias [width]
/// Ba, Kiros and Hinton, arXiv:1607.06450, equation 3. \param bias  null for none
template <class E>
void layer_norm_forward(const NormShape& shape, const E* x, const E* weight, const E* bias, E* y,
                        float* statistics, Workers& workers);

/// Gradients as rms_norm_backward makes them. \param d_bias  added to; null when not trained
template <class E, class G>
void layer_norm_backward(const NormShape& shape, const E* x, const E* weight,
                         const float* statistics, const E* d_y, E* d_x, bool adds, G* d_weight,
                         G* d_bias, Workers& workers);

}  // namespace shardwise::exec
