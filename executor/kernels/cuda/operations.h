#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/kernels/attention/rope.h"
#include "executor/kernels/gelu.h"
#include "executor/kernels/products/cross_entropy.h"

namespace shardwise::exec::cuda {

// Operations of the headers of executor/kernels with the same names, on a stream of a GPU. They
// return when they are issued. The same places may be one as there.

template <class E>
void gelu_forward(Gelu kind, std::int64_t count, const E* x, E* y, cudaStream_t stream);
template <class E>
void gelu_backward(Gelu kind, std::int64_t count, const E* x, const E* d_y, E* d_x,
                   cudaStream_t stream);

template <class E>
void swiglu_forward(std::int64_t rows, std::int64_t width, const E* gate_up, E* y,
                    cudaStream_t stream);
template <class E>
void swiglu_backward(std::int64_t rows, std::int64_t width, E* gate_up, const E* d_y,
                     cudaStream_t stream);

/// Each number is the CPU's or a neighbour of it. \pre position x frequency < 2^30 radians
/// \param frequencies  of the host, read when it is issued; at most kMaxHeadDim / 2
void rope_tables(std::int64_t sequence, std::span<const double> frequencies, float* cosines,
                 float* sines, cudaStream_t stream);
template <class E>
void rope_forward(const RopeShape& shape, const RopeTables& tables, E* x, cudaStream_t stream);
template <class E>
void rope_backward(const RopeShape& shape, const RopeTables& tables, E* d_x, cudaStream_t stream);

/// \param stride  of logits from row to row; what is between two rows is lost
/// \param scale  in the device's memory: it may change from step to step of a graph
template <class E>
void loss_rows(std::int64_t rows, std::int64_t vocabulary, std::int64_t stride,
               const std::int64_t* targets, const float* scale, E* logits, float* losses,
               cudaStream_t stream);
/// Adds losses [rows] and the number of those whose target is not kIgnored, in double and in an
/// order that `rows` alone decides, to `loss`, in the device's memory.
/// \param workspace  sum_losses_bytes(), 8-byte aligned
void sum_losses(std::int64_t rows, const std::int64_t* targets, const float* losses, LossSum* loss,
                std::byte* workspace, cudaStream_t stream);
std::int64_t sum_losses_bytes();

}  // namespace shardwise::exec::cuda
