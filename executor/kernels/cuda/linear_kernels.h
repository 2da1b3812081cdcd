#pragma once

#include <cuda_runtime_api.h>

#include "executor/kernels/compute.h"

namespace shardwise::exec {

/// The products of layers on a GPU, by cuBLASLt or by a kernel of ours. They return when they are
/// issued.
class LinearKernels {
 public:
  virtual ~LinearKernels() = default;
  LinearKernels() = default;
  LinearKernels(const LinearKernels&) = delete;
  LinearKernels& operator=(const LinearKernels&) = delete;

  /// Bytes of workspace of each product, at a multiple of 256.
  virtual std::int64_t workspace_bytes() const = 0;
  virtual void forward(const LinearWork& work, std::byte* workspace, cudaStream_t stream) = 0;
  virtual void backward_input(const LinearBackwardInputWork& work, std::byte* workspace,
                              cudaStream_t stream) = 0;
  virtual void backward_weight(const LinearBackwardWeightWork& work, std::byte* workspace,
                               cudaStream_t stream) = 0;
};

}  // namespace shardwise::exec
