#pragma once

#include <cuda_runtime_api.h>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// A call of CUDA's runtime that failed: "rank 0: cudaMalloc: out of memory (cudaErrorMemory…, 2)".
class CudaError : public IoError {
 public:
  CudaError(int rank, const char* call, cudaError_t code);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// Holds the calls of one rank to success.
class CudaCalls {
 public:
  explicit CudaCalls(int rank) : rank_(rank) {}
  int rank() const { return rank_; }
  /// \throws CudaError unless `result`, of `call`, is cudaSuccess
  void check(cudaError_t result, const char* call) const {
    if (result != cudaSuccess) throw CudaError(rank_, call, result);
  }

 private:
  int rank_;
};

}  // namespace shardwise::exec
