#pragma once

#include <string>

#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/processor.h"

namespace shardwise::exec {

// Products of bf16 by the processor's own instructions for them (AVX-512 BF16, AMX), which OpenBLAS
// has not: oneDNN's, opened when the first of them runs and never on a processor without.

/// Instructions that multiply bf16.
inline constexpr Features kBf16Products(Feature::avx512_bf16, Feature::amx);

/// Library that multiplies matrices of bf16 in this process.
struct Bf16Library {
  bool used = false;    // else they are widened to fp32, block by block
  std::string version;  // "2.6.3", where used
  std::string
      warning;  // that this processor's instructions are not used, with the cure; else empty
};

/// Chosen when first asked for. The variable ONEDNN_MAX_CPU_ISA, which is oneDNN's, can forbid it.
const Bf16Library& bf16_library();

/// Whether oneDNN would be opened for a processor: it multiplies bf16.
bool multiplies_bf16(const Processor& processor);

/// c = a b, or c += a b when `adds`, on the calling thread; sums in fp32, rounded once when c is
/// bf16. Its bits depend on the shape and the strides alone. \returns whether it was done: c is as
/// before where oneDNN lacks the memory or a kernel
/// \pre bf16_library().used, and as for gemm
template <class C>
bool onednn_gemm(const GemmShape& shape, MatrixView<const Bf16> a, MatrixView<const Bf16> b,
                 MatrixView<C> c, bool adds);

}  // namespace shardwise::exec
