#pragma once

#include <optional>

#include "executor/kernels/cuda/gemm_plans.h"
#include "executor/kernels/cuda/linear_kernels.h"
#include "planner/cost/kernels/gemm_workspace.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec {

/// d_x = gelu'(before) d_x, [count].
struct GeluBackwardPass {
  Gelu kind = Gelu::tanh;
  std::int64_t count = 0;
  DType dtype = DType::fp32;
  const std::byte* before = nullptr;
  std::byte* d_x = nullptr;
};

/// d_bias += the sum of d_y's rows, in fp32 and in an order that the shape alone decides; rounded
/// once where `gradient` is bf16.
struct BiasGradientPass {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;  // of d_y, from row to row
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  const std::byte* d_y = nullptr;
  std::byte* d_bias = nullptr;     // [width]
  std::byte* workspace = nullptr;  // kBiasGradientBytes at a multiple of 256
};

/// Kernels for what no epilogue takes. They return when they are issued.
class LinearPasses {
 public:
  virtual ~LinearPasses() = default;
  LinearPasses() = default;
  LinearPasses(const LinearPasses&) = delete;
  LinearPasses& operator=(const LinearPasses&) = delete;

  virtual void gelu(const GeluWork& work, cudaStream_t stream) = 0;
  virtual void gelu_backward(const GeluBackwardPass& pass, cudaStream_t stream) = 0;
  virtual void bias_gradient(const BiasGradientPass& pass, cudaStream_t stream) = 0;
};

/// The products of layers on a GPU: each one call of cuBLASLt with the epilogue that saves a pass
/// where it has one, else the passes after it. A bias gradient is summed by a pass where that was
/// timed to be faster than its epilogue. Weight gradients are added to in the product. The
/// epilogues of GELU act on fp32 sums where the passes act on rounded ones; that of a bias gradient
/// in bf16 rounds the sum of the rows, which is rounded again when it joins what was there.
class CudaLinear final : public LinearKernels {
 public:
  struct Options {
    bool tf32 = false;  // fp32 products may round their operands to TF32
  };
  /// Both outlive it.
  CudaLinear(GemmPlans& plans, LinearPasses& passes, Options options)
      : plans_(plans), passes_(passes), options_(options) {}
  CudaLinear(GemmPlans& plans, LinearPasses& passes) : CudaLinear(plans, passes, Options()) {}

  /// The last bytes of a workspace are the sums that an epilogue makes of bias gradients; the rest
  /// is cuBLASLt's. \returns the bytes for GemmPlans::Options
  static std::int64_t product_bytes(std::int64_t workspace_bytes) {
    return workspace_bytes - kBiasSumBytes;
  }

  /// gemm_workspace_bytes(), as GemmPlans::Options has the rest.
  std::int64_t workspace_bytes() const override {
    return plans_.options().workspace_bytes + kBiasSumBytes;
  }
  void forward(const LinearWork& work, std::byte* workspace, cudaStream_t stream) override;
  void backward_input(const LinearBackwardInputWork& work, std::byte* workspace,
                      cudaStream_t stream) override;
  void backward_weight(const LinearBackwardWeightWork& work, std::byte* workspace,
                       cudaStream_t stream) override;

  void prepare(const LinearWork& work, KernelTuning& tuning) override;
  void prepare(const LinearBackwardInputWork& work, KernelTuning& tuning) override;
  void prepare(const LinearBackwardWeightWork& work, KernelTuning& tuning) override;
  void add_to(KernelChoices& choices) const override { choices.products = plans_.choices(); }
  void take(const KernelChoices& choices) override { plans_.take(choices.products); }

 private:
  /// The call that a work is.
  struct Chosen {
    ProductCall call;
    bool fused = false;  // nothing follows
  };
  template <class Work>
  Chosen chosen(const Work& work);
  std::optional<ProductCall> summing(const LinearBackwardWeightWork& work, std::byte* workspace);
  Chosen chosen_weight(const LinearBackwardWeightWork& work, std::byte* workspace);

  GemmPlans& plans_;
  LinearPasses& passes_;
  Options options_;
};

}  // namespace shardwise::exec
