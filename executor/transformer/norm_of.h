#pragma once

#include "executor/kernels/norm.h"
#include "executor/transformer/weights.h"

namespace shardwise::exec {

/// The norm of a model's kind, with its tensors of a layer.
template <class E>
void norm_forward(bool rms, const NormShape& shape, const ParameterIndex& index,
                  const Weights<E>& weights, const E* x, E* y, float* statistics,
                  Workers& workers) {
  if (rms) return rms_norm_forward(shape, x, weights.weight(index), y, statistics, workers);
  layer_norm_forward(shape, x, weights.weight(index), weights.bias(index), y, statistics, workers);
}

template <class E, class G>
void norm_backward(bool rms, const NormShape& shape, const ParameterIndex& index,
                   const Weights<E>& weights, const Gradients<G>& gradients, const E* x,
                   const float* statistics, const E* d_y, E* d_x, bool adds, Workers& workers) {
  if (rms) {
    return rms_norm_backward(shape, x, weights.weight(index), statistics, d_y, d_x, adds,
                             gradients.weight(index), workers);
  }
  layer_norm_backward(shape, x, weights.weight(index), statistics, d_y, d_x, adds,
                      gradients.weight(index), gradients.bias(index), workers);
}

}  // namespace shardwise::exec
