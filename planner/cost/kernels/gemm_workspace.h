#pragma once

#include <cstdint>

namespace shardwise {

/// Bytes that our products by cuBLASLt have on a GPU, one block for the stream that computes.
/// \param capability  10 * major + minor of CUDA's
/// Source: cuBLAS documentation, cublasSetWorkspace, recommended sizes: 4 MiB, 32 MiB from Hopper
/// on.
constexpr std::int64_t gemm_workspace_bytes(int capability) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  return (capability >= 90 ? 32 : 4) * kMiB;
}

/// The last of them have the sums that an epilogue makes of bias gradients, in fp32.
inline constexpr std::int64_t kBiasSumBytes = std::int64_t{1} << 19;

}  // namespace shardwise
