#pragma once

#include <cuda_runtime_api.h>

#include "executor/kernels/attention/attention.h"

namespace shardwise::exec::cuda {

// Attention of bf16 on the tensor cores of sm_80 and later, by mma.sync: FlashAttention-2 (Dao,
// arXiv:2307.08691) with all sums in an order that the shape alone decides. Products of 16 terms
// are fp32; the softmax's p and the gradients of scores are rounded to bf16 before their products.

/// Whether there are kernels: for heads of 64, 80, 96 and 128, of tensors at addresses that 16
/// divides.
bool takes_tensor_cores(const AttentionShape& shape, const Bf16* qkv, const Bf16* out);

/// \pre takes_tensor_cores(shape, qkv, out)  \pre shape has tokens
void attention_forward_mma(const AttentionShape& shape, const Bf16* qkv, Bf16* out, float* log_sums,
                           cudaStream_t stream);

/// \param deltas  [batch, heads, sequence]: the sum of out d_out of each row
/// \param d_queries  [batch, heads, sequence, head_dim], a workspace
/// \pre takes_tensor_cores() of qkv, d_out and d_queries  \pre shape has tokens
void attention_backward_mma(const AttentionShape& shape, Bf16* qkv, const float* log_sums,
                            const Bf16* d_out, const float* deltas, Bf16* d_queries,
                            cudaStream_t stream);

}  // namespace shardwise::exec::cuda
