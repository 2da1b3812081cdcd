#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>

#include "executor/kernels/cuda/attention_kernels.h"
#include "executor/kernels/cudnn/sdpa_plan.h"

namespace shardwise::exec {

/// Attention by cuDNN, of the works that it takes on one GPU. A shape's plan is made when it is
/// first asked for, which compiles for about a second: by the best engine that the GPU does not
/// refuse. All functions throw CudnnError.
class CudnnAttention final : public AttentionKernels {
 public:
  /// Attention on the GPU that is current. \param library outlives it
  /// \param capability  10 * major + minor of CUDA's
  /// \param deterministic  equal inputs give equal bits (SdpaWork)
  CudnnAttention(const CudnnLibrary& library, int capability, bool deterministic);
  ~CudnnAttention() override;

  /// Whether cuDNN runs it: bf16, with tensors at addresses that 16 divides, and an engine that
  /// needs no more than sdpa_engine_bytes() besides, for a backward of sdpa_backward_by_cudnn().
  bool takes(const AttentionWork& work);
  bool takes(const AttentionBackwardWork& work);

  /// \pre takes(work)
  void forward(const AttentionWork& work, std::span<std::byte> workspace,
               cudaStream_t stream) override;
  void backward(const AttentionBackwardWork& work, std::span<std::byte> workspace,
                cudaStream_t stream) override;

 private:
  struct Ready {
    SdpaEngines engines;
    SdpaPlan plan;
  };
  struct Key {
    std::int64_t batch, sequence, heads, kv_heads, head_dim, window;
    SdpaPass pass;
    auto operator<=>(const Key&) const = default;
  };
  /// Null where cuDNN has none.
  std::unique_ptr<Ready> made(const AttentionShape& shape, SdpaPass pass) const;
  /// Plan as above, made once.
  const SdpaPlan* plan(const AttentionShape& shape, DType dtype, SdpaPass pass);
  void run(const AttentionShape& shape, DType dtype, SdpaPass pass, SdpaOperands operands,
           std::span<std::byte> workspace, cudaStream_t stream);

  const CudnnLibrary& library_;
  int capability_;
  bool deterministic_;
  cudnnHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Ready>> plans_;  // null: cuDNN has none
};

}  // namespace shardwise::exec
