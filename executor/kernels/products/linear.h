#pragma once

#include <cstdint>

#include "executor/kernels/products/gemm.h"

namespace shardwise::exec {

/// y = x W^T + bias over rows of tokens.
///   x [rows, in], weight [out, in] or, `transposed`, [in, out] (GPT-2's Conv1D), bias [out],
///   y [rows, out]
/// x and y may be columns of wider tensors: x_stride, y_stride elements from row to row. E is float
/// or Bf16; nothing is saved, nothing is needed besides the arguments.
struct LinearShape {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  bool transposed = false;
};

/// \param bias  null for none
/// \param adds  y += x W^T + bias rather than y = : a residual stream
template <class E>
void linear_forward(const LinearShape& shape, const E* x, const E* weight, const E* bias, E* y,
                    bool adds, Workers& workers);

/// d_x = d_y W, added to d_x when `adds`. d_x has the place and stride of x, d_y those of y.
template <class E>
void linear_backward_input(const LinearShape& shape, const E* d_y, const E* weight, E* d_x,
                           bool adds, Workers& workers);

/// d_weight += d_y^T x and d_bias += the sum of d_y's rows. Summed in fp32 whatever E; where G, the
/// type of gradients, is Bf16 each is rounded once, when the sum joins what was there.
/// \param d_weight  null when not trained; d_bias null for none
template <class E, class G>
void linear_backward_weight(const LinearShape& shape, const E* x, const E* d_y, G* d_weight,
                            G* d_bias, Workers& workers);

}  // namespace shardwise::exec
