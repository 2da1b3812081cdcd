#pragma once

#include "executor/kernels/cuda/attention_kernels.h"
#include "executor/kernels/cuda/cuda_linear.h"
#include "executor/kernels/cuda/linear_kernels.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec {

/// Products by our kernel, executor/kernels/products/gemm.cu. The workspace is of bias gradients.
class OwnLinear final : public LinearKernels {
 public:
  std::int64_t workspace_bytes() const override { return kBiasGradientBytes; }
  void forward(const LinearWork& work, std::byte* workspace, cudaStream_t stream) override;
  void backward_input(const LinearBackwardInputWork& work, std::byte* workspace,
                      cudaStream_t stream) override;
  void backward_weight(const LinearBackwardWeightWork& work, std::byte* workspace,
                       cudaStream_t stream) override;
};

/// The passes behind products of cuBLASLt, by our kernels.
class OwnPasses final : public LinearPasses {
 public:
  void gelu(const GeluWork& work, cudaStream_t stream) override;
  void gelu_backward(const GeluBackwardPass& pass, cudaStream_t stream) override;
  void bias_gradient(const BiasGradientPass& pass, cudaStream_t stream) override;
};

/// Attention by our kernels, executor/kernels/attention/attention.cu: every shape, fp32 and bf16.
/// No workspace but the work's.
class OwnAttention final : public AttentionKernels {
 public:
  void forward(const AttentionWork& work, std::span<std::byte> workspace,
               cudaStream_t stream) override;
  void backward(const AttentionBackwardWork& work, std::span<std::byte> workspace,
                cudaStream_t stream) override;
};

}  // namespace shardwise::exec
