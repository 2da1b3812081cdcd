#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "executor/kernels/norm.h"

namespace shardwise::exec::cuda {

// The norms of executor/kernels/norm.h on a stream of a GPU. They return when they are issued.
// Sums are fp32, in an order that the shape alone decides.

/// \param kept  left with a copy of x, with its stride, read once for both; null for none
template <class E>
void rms_norm_forward(const NormShape& shape, const E* x, E* kept, const E* weight, E* y,
                      float* statistics, cudaStream_t stream);
template <class E>
void layer_norm_forward(const NormShape& shape, const E* x, E* kept, const E* weight, const E* bias,
                        E* y, float* statistics, cudaStream_t stream);

/// Bytes of workspace of either backward, 16-byte aligned: sums of d_weight and d_bias by part of
/// the rows.
std::int64_t norm_backward_bytes(const NormShape& shape);

template <class E, class G>
void rms_norm_backward(const NormShape& shape, const E* x, const E* weight, const float* statistics,
                       const E* d_y, E* d_x, bool adds, G* d_weight, std::byte* workspace,
                       cudaStream_t stream);
template <class E, class G>
void layer_norm_backward(const NormShape& shape, const E* x, const E* weight,
                         const float* statistics, const E* d_y, E* d_x, bool adds, G* d_weight,
                         G* d_bias, std::byte* workspace, cudaStream_t stream);

}  // namespace shardwise::exec::cuda
