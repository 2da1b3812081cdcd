#pragma once

#include <cuda_runtime_api.h>

#include "executor/kernels/compute/compute.h"
#include "executor/kernels/cuda/kernel_choices.h"
#include "executor/kernels/cuda/kernel_tuning.h"

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

  /// Makes what the product needs beside its operands, so that nothing is made or chosen when it is
  /// issued, and may time it at its operands' places, whose contents are lost then.
  virtual void prepare(const LinearWork& /*work*/, KernelTuning& /*tuning*/) {}
  virtual void prepare(const LinearBackwardInputWork& /*work*/, KernelTuning& /*tuning*/) {}
  virtual void prepare(const LinearBackwardWeightWork& /*work*/, KernelTuning& /*tuning*/) {}
  /// Adds what was chosen so far, by prepare() or take().
  virtual void add_to(KernelChoices& /*choices*/) const {}
  /// Takes what was chosen elsewhere, before prepare().
  virtual void take(const KernelChoices& /*choices*/) {}
};

}  // namespace shardwise::exec
