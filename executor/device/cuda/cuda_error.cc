#include "executor/device/cuda/cuda_error.h"

#include <fmt/format.h>

namespace shardwise::exec {

CudaError::CudaError(int rank, const char* call, cudaError_t code)
    : IoError(fmt::format("rank {}: {}: {} ({}, {})", rank, call, cudaGetErrorString(code),
                          cudaGetErrorName(code), static_cast<int>(code))),
      code_(code) {
  // What this thread's next look would find is said here.
  static_cast<void>(cudaGetLastError());
}

}  // namespace shardwise::exec
