#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// A matrix in row-major memory: element (row, column) is at data[row * stride + column], or at
/// data[column * stride + row] when `transposed`.
template <class E>
struct MatrixView {
  E* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// Makes sure that so many threads can multiply at once, before any does: OpenBLAS tries without
/// end where a limit of address space (ulimit -v) has no room for the buffer of one more thread.
/// \throws IoError when there is none
void reserve_gemm_buffers(std::int64_t threads);

/// c [m, n] = a [m, k] b [k, n], added to c when `adds`; sums in fp32, rounded once when c is bf16.
/// Cut into blocks by the shape alone. \pre c is not transposed and overlaps neither a nor b
template <class A, class B, class C>
void gemm(const GemmShape& shape, MatrixView<const A> a, MatrixView<const B> b, MatrixView<C> c,
          bool adds, Workers& workers);

/// Multiplies a tile that fits a cache, on the calling thread.
void tile_gemm(const GemmShape& shape, MatrixView<const float> a, MatrixView<const float> b,
               MatrixView<float> c, bool adds);

}  // namespace shardwise::exec
