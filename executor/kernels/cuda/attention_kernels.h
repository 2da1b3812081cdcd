#pragma once

#include <cuda_runtime_api.h>

#include "executor/kernels/compute/compute.h"
#include "executor/kernels/cuda/kernel_choices.h"
#include "executor/kernels/cuda/kernel_tuning.h"

namespace shardwise::exec {

/// Attention of layers on a GPU, by cuDNN or by kernels of ours. They return when they are issued.
class AttentionKernels {
 public:
  virtual ~AttentionKernels() = default;
  AttentionKernels() = default;
  AttentionKernels(const AttentionKernels&) = delete;
  AttentionKernels& operator=(const AttentionKernels&) = delete;

  virtual void forward(const AttentionWork& work, std::span<std::byte> workspace,
                       cudaStream_t stream) = 0;
  virtual void backward(const AttentionBackwardWork& work, std::span<std::byte> workspace,
                        cudaStream_t stream) = 0;

  // Prepares as LinearKernels do.
  virtual void prepare(const AttentionWork& /*work*/, KernelTuning& /*tuning*/) {}
  virtual void prepare(const AttentionBackwardWork& /*work*/, KernelTuning& /*tuning*/) {}
  virtual void add_to(KernelChoices& /*choices*/) const {}
  virtual void take(const KernelChoices& /*choices*/) {}
};

}  // namespace shardwise::exec
