#pragma once

#include <cuda_runtime_api.h>

#include "executor/kernels/attention/attention.h"

namespace shardwise::exec::cuda {

// Attention of executor/kernels/attention/attention.h on a stream of a GPU, by kernels of ours.
// They return when they are issued. Products and sums are fp32, key after key or query after query
// by tiles whose size head_dim alone decides; nothing is added in order of arrival.

template <class E>
void attention_forward(const AttentionShape& shape, const E* qkv, E* out, float* log_sums,
                       cudaStream_t stream);

/// Puts the gradients of queries, keys and values in their places.
/// \param workspace  attention_backward_bytes(shape)
template <class E>
void attention_backward(const AttentionShape& shape, E* qkv, const E* out, const float* log_sums,
                        const E* d_out, float* workspace, cudaStream_t stream);

}  // namespace shardwise::exec::cuda
