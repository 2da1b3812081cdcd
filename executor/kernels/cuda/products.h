#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/kernels/gelu.h"
#include "executor/kernels/products/linear.h"

namespace shardwise::exec::cuda {

// Products by a kernel of ours, on a stream of a GPU: what runs where cuBLASLt is not, and what it
// is held against. They return when they are issued. Sums are fp32 in the order of k, rounded once
// when the result is stored, behind the bias, what it is added to and gelu'. Shapes as in
// executor/kernels/products/gemm.h and linear.h.

/// c = a b, or c += with `adds`. \pre as exec::gemm
template <class E, class C>
void gemm(const GemmShape& shape, MatrixView<const E> a, MatrixView<const E> b, MatrixView<C> c,
          bool adds, cudaStream_t stream);

/// \param gelu  makes activated [rows, out], of y as stored \pre y_stride is then out
template <class E>
void linear_forward(const LinearShape& shape, const E* x, const E* weight, const E* bias, E* y,
                    bool adds, std::optional<Gelu> gelu, E* activated, cudaStream_t stream);

/// \param gelu  multiplies d_x with gelu'(before [rows, in]) \pre x_stride is then in
template <class E>
void linear_backward_input(const LinearShape& shape, const E* d_y, const E* weight, E* d_x,
                           bool adds, std::optional<Gelu> gelu, const E* before,
                           cudaStream_t stream);

/// \param d_weight  null when not trained; d_bias null for none \param workspace  as
/// bias_gradient()
template <class E, class G>
void linear_backward_weight(const LinearShape& shape, const E* x, const E* d_y, G* d_weight,
                            G* d_bias, std::byte* workspace, cudaStream_t stream);

/// d_bias [width] += the sum of the rows of d_y, `stride` elements from row to row.
/// \param workspace  kBiasGradientBytes, 4-byte aligned; not used for up to 64 rows
template <class E, class G>
void bias_gradient(std::int64_t rows, std::int64_t width, std::int64_t stride, const E* d_y,
                   G* d_bias, std::byte* workspace, cudaStream_t stream);

}  // namespace shardwise::exec::cuda
